import cluster from 'node:cluster';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  ClusterAddressError,
  ClusterConfigurationError,
} from '../../../../src/contract/errors/index.js';
import type { ListenTarget } from '../../../../src/contract/messages.js';
import type { BoundSocket, ServerHandle } from '../../../../src/primary/listening/bound-socket.js';
import { Listening } from '../../../../src/primary/listening/listening.js';
import type { BalancingStrategy } from '../../../../src/contract/options/index.js';
import type { WorkerState } from '../../../../src/contract/snapshot/index.js';
import { FakeWorker } from '../../support/fake-worker.js';

const NOW = 100_000;

/** A bound socket that knows whether it was closed. */
class FakeSocket {
  readonly handle: ServerHandle & { readonly name: string };
  readonly target: ListenTarget;
  closed = 0;

  constructor(
    readonly port: number,
    private readonly bindAnother: (port: number) => FakeSocket,
  ) {
    this.handle = { name: `socket of port ${port}`, close: () => {} };
    this.target = { kind: 'tcp', port, host: '127.0.0.1' };
  }

  another(port: number): FakeSocket {
    return this.bindAnother(port);
  }

  letGo(): object {
    this.close();
    return { target: this.target, handle: undefined, url: this.url };
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  close(): void {
    this.closed += 1;
  }
}

class Worker extends FakeWorker {
  #listens = false;
  #read = 0;

  constructor(slot: number, state: WorkerState = 'ready') {
    super({ slot, state });
  }

  /** The messages sent since `told` was last read, for example `adopt 1`. */
  get told(): string[] {
    const fresh = this.messages.slice(this.#read) as { type: string; slot?: number }[];
    this.#read = this.messages.length;
    return fresh.map(({ type, slot }) => `${type} ${slot}`);
  }

  /** Grants a ready worker its socket, as before it became ready. That message is not told. */
  listenOn(listening: Listening): void {
    if (this.#listens || this.handle.state !== 'ready') return;
    this.#listens = true;
    listening.grant(this.handle);
    this.#read = this.messages.length;
  }

  /** The worker has not answered a ping for this time. */
  silentFor(ms: number): void {
    this.enter('ready', { ping: { seq: 1, sentAt: NOW - ms } });
  }
}

interface Setting {
  readonly balancing?: BalancingStrategy;
  /** The port that is taken. */
  readonly taken?: number;
}

/** A listening whose sockets are fakes, before it is opened. `sockets` has the sockets of the slots. */
function closed(slots: number, { balancing = 'reuse-port', taken = -1 }: Setting = {}) {
  const sockets: FakeSocket[] = [];
  const opened: FakeSocket[] = [];
  const refuse = { from: taken, opening: 0 };
  const refusal = (port: number) =>
    new ClusterAddressError(
      `port ${port}`,
      Object.assign(new Error('bind EACCES'), { code: 'EACCES' }),
    );
  const bind = (port: number): FakeSocket => {
    // With reuse-port all sockets have one port: the tests tell them apart by the slot.
    const socket = new FakeSocket(balancing === 'ports' ? port : 3_000 + sockets.length, bind);
    if (socket.port === refuse.from) throw refusal(port);
    sockets.push(socket);
    return socket;
  };
  const address = { kind: 'tcp', port: 3_000, host: undefined } as const;
  const listening = new Listening({ address, balancing, workers: slots }, undefined, async () => {
    if ((refuse.opening -= 1) >= 0) throw refusal(3_000);
    opened.push(new FakeSocket(3_000, bind));
    return opened.at(-1) as unknown as BoundSocket;
  });
  return {
    listening,
    sockets,
    opened,
    refuse,
    settle: (...workers: Worker[]) => {
      for (const worker of workers) worker.listenOn(listening);
      listening.settle(
        workers.map(({ handle }) => handle),
        NOW,
      );
    },
  };
}

async function start(slots = 3, setting: Setting = {}) {
  const started = closed(slots, setting);
  await started.listening.open();
  return started;
}

/** Three sockets, each with a worker that serves it. */
async function serving() {
  const started = await start(3);
  const [a, b, c] = [new Worker(0), new Worker(1), new Worker(2)];
  started.settle(a, b, c);
  expect([a.told, b.told, c.told]).toEqual([[], [], []]);
  return { ...started, a, b, c };
}

const BOTH = { a: 'adopt 2', b: 'adopt 2' };

describe('sockets of slots', () => {
  it('are bound one for each slot, and granted to its worker', async () => {
    const { listening, sockets } = await start(3);
    for (const slot of [2, 0]) {
      const worker = new Worker(slot, 'starting');
      listening.grant(worker.handle);
      expect(worker.messages).toMatchObject([
        { type: 'listen', target: { kind: 'tcp', port: 3_000 + slot, host: '127.0.0.1' } },
      ]);
      expect(worker.handles[0]).toBe(sockets[slot]!.handle);
    }
  });

  it('are the same for each worker that a slot has', async () => {
    const { listening, sockets } = await start(1);
    const [first, second] = [new Worker(0), new Worker(0, 'starting')];
    listening.grant(first.handle);
    listening.grant(second.handle);
    expect(second.handles[0]).toBe(sockets[0]!.handle);
    expect(sockets).toHaveLength(1);
  });

  it.each([
    ['ports', [3_000, 3_001, 3_002]],
    ['reuse-port', []],
  ] as const)(
    'of the strategy %s tell ports %j, and the address of the first',
    async (balancing, ports) => {
      expect((await start(3, { balancing })).listening).toMatchObject({
        balancing,
        ports,
        url: 'http://127.0.0.1:3000',
      });
    },
  );

  it('are all closed with the cluster, each once', async () => {
    const { listening, sockets } = await start(3);
    listening.close();
    expect(sockets.map(({ closed }) => closed)).toEqual([1, 1, 1]);
  });
});

describe('more slots', () => {
  it('have sockets added, those there were stay, and no fewer slots close one', async () => {
    const { listening, sockets } = await start(2, { balancing: 'ports' });
    for (const slots of [4, 4, 1, 4]) listening.reserve(slots);
    expect(listening.ports).toEqual([3_000, 3_001, 3_002, 3_003]);
    expect(sockets.map(({ closed }) => closed)).toEqual([0, 0, 0, 0]);
  });

  it('are all refused where one cannot be bound: what was bound for them is closed', async () => {
    const { listening, sockets, refuse } = await start(2, { balancing: 'ports' });
    refuse.from = 3_004;
    expect(() => listening.reserve(6)).toThrow(ClusterAddressError);
    expect(sockets.map(({ port, closed }) => [port, closed])).toEqual([
      [3_000, 0],
      [3_001, 0],
      [3_002, 1],
      [3_003, 1],
    ]);
    expect(listening.ports).toEqual([3_000, 3_001]);
    // The port is free again.
    refuse.from = -1;
    listening.reserve(3);
    expect(listening.ports).toEqual([3_000, 3_001, 3_002]);
  });

  it('that were refused at start leave no socket behind', async () => {
    const { listening, sockets } = closed(3, { taken: 3_001 });
    await expect(listening.open()).rejects.toThrow(ClusterAddressError);
    expect(sockets.map((socket) => socket.closed)).toEqual([1]);
    expect(listening.sockets).toEqual([]);
  });
});

describe('a socket whose worker is gone', () => {
  /** The workers that are there, and what they are told: a, b and c are of slots 0 to 2. */
  type Step = [present: string, told: Partial<Record<'a' | 'b' | 'c' | 'next', string>>];

  it.each<[what: string, ...steps: Step[]]>([
    ['is taken over by every other worker', ['a c', { a: 'adopt 1', c: 'adopt 1' }]],
    ['is offered once, however often things settle', ['a b', BOTH], ['a b', {}], ['a b', {}]],
    [
      'is let go once its slot has a worker again, and never offered to that one',
      ['a c', { a: 'adopt 1', c: 'adopt 1' }],
      ['a next c', { a: 'release 1', c: 'release 1' }],
      ['a next c', {}],
    ],
    [
      'is offered to a worker that becomes ready later',
      ['a', { a: 'adopt 1, adopt 2' }],
      ['a next', { a: 'release 1', next: 'adopt 2' }],
    ],
    [
      'waits where no worker is left, and is taken over by the first that comes',
      ['', {}],
      ['next', { next: 'adopt 0, adopt 2' }],
    ],
    ['is kept while a second one is taken over', ['a b', BOTH], ['a', { a: 'adopt 1' }]],
    [
      'is taken over once more by a worker that had let it go',
      ['a c', { a: 'adopt 1', c: 'adopt 1' }],
      ['a next c', { a: 'release 1', c: 'release 1' }],
      ['a c', { a: 'adopt 1', c: 'adopt 1' }],
    ],
  ])('%s', async (_, ...steps) => {
    const { settle, a, b, c } = await serving();
    const workers = { a, b, c, next: new Worker(1) };
    const names = Object.keys(workers) as (keyof typeof workers)[];
    for (const [present, told] of steps) {
      settle(...names.filter((name) => present.includes(name)).map((name) => workers[name]));
      const all = names.map((name) => [name, workers[name].told.join(', ')]);
      expect(Object.fromEntries(all.filter(([, text]) => text !== ''))).toEqual(told);
    }
  });

  it('is taken over with its handle', async () => {
    const { settle, sockets, a, c } = await serving();
    settle(a, c);
    expect(a.handles.at(-1)).toBe(sockets[1]!.handle);
  });

  it.each(['starting', 'draining', 'exited'] as const)(
    'counts as such also where its worker is %s, which is not told of others',
    async (state) => {
      const { settle, a, b } = await serving();
      b.enter(state);
      settle(a, b);
      expect([a.told.toSorted(), b.told]).toEqual([['adopt 1', 'adopt 2'], []]);
    },
  );

  it('is let go once its slot is wanted again and has a worker', async () => {
    const { listening, settle, sockets, a, b } = await serving();
    settle(a, b);
    listening.reserve(3);
    settle(a, b, new Worker(2));
    expect(a.told).toEqual(['adopt 2', 'release 2']);
    expect(sockets).toHaveLength(3);
  });
});

describe('a socket that no worker was given', () => {
  it('is adopted by nobody: nothing can wait in it', async () => {
    const { listening, settle } = await start(2);
    const [a, b] = [new Worker(0), new Worker(1)];
    settle(a);
    listening.reserve(4);
    settle(a, new Worker(1, 'starting'), new Worker(2, 'starting'));
    expect(a.told).toEqual([]);
    settle(a, b);
    settle(a);
    expect(a.told).toEqual(['adopt 1']);
  });

  it('is adopted once it was given to one that never became ready', async () => {
    const { listening, settle } = await start(2);
    const [a, failing] = [new Worker(0), new Worker(1, 'starting')];
    settle(a, failing);
    expect(a.told).toEqual([]);
    listening.grant(failing.handle);
    failing.enter('exited');
    settle(a);
    expect(a.told).toEqual(['adopt 1']);
  });
});

describe('a socket whose worker does not answer', () => {
  it.each([
    [1_999, []],
    [2_000, ['adopt 1']],
  ])('for %d ms makes the others do %j, until that answers again', async (ms, told) => {
    const { settle, a, b, c } = await serving();
    b.silentFor(ms);
    settle(a, b, c);
    expect([a.told, b.told, c.told]).toEqual([told, [], told]);
    b.enter('ready');
    settle(a, b, c);
    expect([a.told, b.told]).toEqual([told.map(() => 'release 1'), []]);
  });

  it('is served where its slot has two workers, one of which answers', async () => {
    const { settle, a, b, c } = await serving();
    const candidate = new Worker(1);
    b.silentFor(5_000);
    settle(a, b, c, candidate);
    expect([a, b, c, candidate].map(({ told }) => told)).toEqual([[], [], [], []]);
  });

  it('is taken over by whoever is blocked too, for when it goes on: nobody else is there', async () => {
    const { settle, a, b, c } = await serving();
    for (const worker of [a, b, c]) worker.silentFor(5_000);
    settle(a, b, c);
    expect([a.told, b.told]).toEqual([
      ['adopt 1', 'adopt 2'],
      ['adopt 0', 'adopt 2'],
    ]);
  });
});

describe('the shared socket', () => {
  it('is granted to every worker, whatever its slot, and closed with the cluster', async () => {
    cluster.schedulingPolicy = cluster.SCHED_RR;
    const { listening, opened, settle } = await start(2, { balancing: 'shared' });
    for (const slot of [0, 7]) {
      const worker = new Worker(slot, 'starting');
      listening.grant(worker.handle);
      expect(worker.messages).toMatchObject([{ type: 'listen', target: opened[0]!.target }]);
      expect(worker.handles[0]).toBe(opened[0]!.handle);
    }
    const idle = new Worker(1);
    settle(idle);
    expect(idle.told).toEqual([]);
    expect(listening).toMatchObject({
      balancing: 'shared',
      url: 'http://127.0.0.1:3000',
      ports: [],
    });
    expect(cluster.schedulingPolicy).toBe(cluster.SCHED_RR);
    listening.close();
    expect(opened[0]!.closed).toBe(1);
  });

  it('is granted as an address alone with round-robin: node:cluster does the rest', async () => {
    const { listening, opened } = await start(2, { balancing: 'round-robin' });
    const worker = new Worker(0, 'starting');
    listening.grant(worker.handle);
    expect([worker.inbox, worker.handles]).toEqual([['listen'], [undefined]]);
    expect(opened[0]!.closed).toBe(1);
    expect([listening.balancing, cluster.schedulingPolicy]).toEqual([
      'round-robin',
      cluster.SCHED_RR,
    ]);
  });
});

describe('a Node version without net._createServerHandle', () => {
  const withoutHandle = (balancing: BalancingStrategy) => {
    const before = cluster.schedulingPolicy;
    onTestFinished(() => void (cluster.schedulingPolicy = before));
    cluster.schedulingPolicy = cluster.SCHED_RR;
    const address = { kind: 'tcp', port: 3_000, host: '127.0.0.1' } as const;
    const socket = { target: address, handle: undefined, close: () => {} };
    return new Listening({ address, balancing, workers: 2 }, undefined, () =>
      Promise.resolve(socket as unknown as BoundSocket),
    );
  };

  it('has workers share one socket through node:cluster', async () => {
    const listening = withoutHandle('shared');
    await listening.open();
    const worker = new Worker(1, 'starting');
    listening.grant(worker.handle);
    expect(worker.sent('listen')).toMatchObject([{ target: { kind: 'tcp', port: 3_000 } }]);
    expect(worker.handles).toEqual([undefined]);
    expect(cluster.schedulingPolicy).toBe(cluster.SCHED_NONE);
  });

  it.each(['reuse-port', 'ports'] as const)('is refused with %s', async (balancing) => {
    const refused = withoutHandle(balancing).open();
    await expect(refused).rejects.toBeInstanceOf(ClusterConfigurationError);
    await expect(refused).rejects.toThrow(
      `balancing '${balancing}' needs net._createServerHandle of Node, which this one (${process.version}) does not have; set balancing to 'shared'`,
    );
  });
});

describe('the default address', () => {
  const settled = () => new Promise((resolve) => setImmediate(resolve));

  it('is not bound if no worker asks for it', async () => {
    const { listening, opened } = closed(2, { balancing: 'ports' });
    listening.reserve(4);
    listening.settle([], 0);
    expect([listening.balancing, listening.ports]).toEqual(['none', []]);
    listening.close();
    await settled();
    expect(opened).toEqual([]);
  });

  it('is bound once, by the first worker that asks, for as many slots as there are then', async () => {
    const { listening, opened, sockets } = closed(2, { balancing: 'ports' });
    const workers = [0, 1, 2].map((slot) => new Worker(slot, 'starting'));
    listening.reserve(3);
    for (const worker of workers) listening.grant(worker.handle);
    await settled();
    listening.reserve(4);
    expect([opened.length, listening.ports]).toEqual([1, [3_000, 3_001, 3_002, 3_003]]);
    expect(workers.map(({ handles }) => handles[0])).toEqual(
      sockets.slice(0, 3).map(({ handle }) => handle),
    );
  });

  it('is refused with the reason of the system, and tried again for the next worker', async () => {
    const { listening, refuse } = closed(2, { balancing: 'shared' });
    refuse.opening = 1;
    const [first, next] = [new Worker(0, 'starting'), new Worker(1, 'starting')];
    listening.grant(first.handle);
    await settled();
    expect(first.sent('listen-refused')).toMatchObject([
      { error: { code: 'EACCES', message: 'bind EACCES' } },
    ]);
    listening.grant(next.handle);
    await settled();
    expect(next.inbox).toEqual(['listen']);
  });

  it('is closed if the cluster ends while it is being bound', async () => {
    const { listening, opened } = closed(2, { balancing: 'shared' });
    listening.grant(new Worker(0, 'starting').handle);
    listening.close();
    await settled();
    expect(opened[0]!.closed).toBe(1);
  });
});
