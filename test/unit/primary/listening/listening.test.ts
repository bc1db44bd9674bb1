import cluster from 'node:cluster';
import { channel } from 'node:diagnostics_channel';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  ClusterAddressError,
  ClusterConfigurationError,
} from '../../../../src/contract/errors/errors.js';
import type { BalancingStrategy } from '../../../../src/contract/options/resolve.js';
import { LISTENING } from '../../../../src/contract/process/accept-queue.js';
import type { WorkerState } from '../../../../src/contract/snapshot/types.js';
import type { BoundSocket } from '../../../../src/primary/listening/bound-socket.js';
import { ClusterAcceptors, Listening } from '../../../../src/primary/listening/listening.js';
import { FakeWorker } from '../../support/fake-worker.js';

const NOW = 100_000;

/** A bound socket. With reuse-port, tests tell the sockets apart by `slot`. */
class FakeSocket {
  readonly handle: object | undefined = { close: () => {} };
  closed = 0;

  constructor(
    readonly port: number,
    readonly another: (port: number) => FakeSocket,
  ) {}

  get target() {
    return { kind: 'tcp', port: this.port, host: '127.0.0.1' } as const;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  letGo(): object {
    this.close();
    return { target: this.target, handle: undefined, url: this.url };
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

  /** The messages since the last call, for example `adopt 1`. */
  fresh(): string {
    const messages = this.messages.slice(this.#read) as { type: string; slot?: number }[];
    this.#read = this.messages.length;
    return messages.map(({ type, slot }) => `${type} ${slot}`).join(', ');
  }

  /** Grants a ready worker its socket, as before it became ready. That message is not fresh. */
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

/** A listening with fake sockets, before it is opened. `sockets` has the sockets of the slots. */
function closed(slots: number, balancing: BalancingStrategy = 'reuse-port') {
  const sockets: FakeSocket[] = [];
  const opened: FakeSocket[] = [];
  /** `port`: the port that cannot be bound. `openings`: how many openings fail. */
  const refuse = { port: -1, openings: 0 };
  const refusal = (port: number) =>
    new ClusterAddressError(
      `port ${port}`,
      Object.assign(new Error('bind EACCES'), { code: 'EACCES' }),
    );
  const bind = (port: number): FakeSocket => {
    if (port === refuse.port) throw refusal(port);
    sockets.push(new FakeSocket(port, bind));
    return sockets.at(-1)!;
  };
  const address = { kind: 'tcp', port: 3_000, host: undefined } as const;
  const listening = new Listening({ address, balancing, workers: slots }, undefined, async () => {
    if ((refuse.openings -= 1) >= 0) throw refusal(3_000);
    opened.push(new FakeSocket(3_000, bind));
    return opened.at(-1) as unknown as BoundSocket;
  });
  const settle = (...workers: Worker[]): void => {
    for (const worker of workers) worker.listenOn(listening);
    const handles = workers.map(({ handle }) => handle);
    listening.settle(handles, NOW);
  };
  return { listening, sockets, opened, refuse, settle };
}

async function start(slots: number, balancing?: BalancingStrategy) {
  const started = closed(slots, balancing);
  await started.listening.open();
  return started;
}

/** Three sockets, each with a worker that serves it. */
async function serving() {
  const started = await start(3);
  const [a, b, c] = [new Worker(0), new Worker(1), new Worker(2)];
  started.settle(a, b, c);
  const fresh = () => [a, b, c].map((worker) => worker.fresh());
  expect(fresh()).toEqual(['', '', '']);
  return { ...started, a, b, c, fresh };
}

const { schedulingPolicy } = cluster;
beforeEach(() => void (cluster.schedulingPolicy = cluster.SCHED_RR));
afterEach(() => void (cluster.schedulingPolicy = schedulingPolicy));

it.each([
  ['ports', 'that of its slot', [3_000, 3_001, 3_002]],
  ['reuse-port', 'that of its slot', []],
  ['shared', 'the only one', []],
] as const)('with %s each worker is granted a socket, %s', async (balancing, _, ports) => {
  const { listening, sockets, opened } = await start(3, balancing);
  expect(listening).toMatchObject({ balancing, ports, url: 'http://127.0.0.1:3000' });
  const all = balancing === 'shared' ? Array.from({ length: 8 }, () => opened[0]!) : sockets;
  for (const slot of [2, 0, all.length - 1]) {
    const worker = new Worker(slot, 'starting');
    listening.grant(worker.handle);
    expect(worker.messages).toMatchObject([{ type: 'listen', target: all[slot]!.target }]);
    expect(worker.handles[0]).toBe(all[slot]!.handle);
  }
  expect(cluster.schedulingPolicy).toBe(cluster.SCHED_RR);
  listening.close();
  expect(all.map(({ closed }) => closed)).toEqual(all.map(() => 1));
});

describe('a socket for each slot', () => {
  it('is not added if its port would be above 65535', async () => {
    const { listening } = await start(2, 'ports');
    expect(() => listening.reserve(62_537)).toThrow(
      "balancing 'ports' with port 3000 and 62537 workers exceeds port 65535",
    );
    expect(listening.ports).toEqual([3_000, 3_001]);
  });

  it('is closed if another one cannot be bound at the start', async () => {
    const { listening, sockets, refuse } = closed(3, 'ports');
    refuse.port = 3_001;
    await expect(listening.open()).rejects.toThrow(ClusterAddressError);
    expect([sockets.map((socket) => socket.closed), listening.sockets]).toEqual([[1], []]);
  });
});

describe('a socket whose worker is gone', () => {
  const BOTH = { a: 'adopt 2', b: 'adopt 2' };
  const OTHERS = { a: 'adopt 1', c: 'adopt 1' };
  const RELEASED = { a: 'release 1', c: 'release 1' };
  /** The workers that are there, and what they are sent: a, b and c are of slots 0 to 2. */
  type Step = [present: string, sent: Partial<Record<'a' | 'b' | 'c' | 'next', string>>];

  it.each<[what: string, ...steps: Step[]]>([
    ['is adopted once by every other worker', ['a b', BOTH], ['a b', {}], ['a b', {}]],
    [
      'is released when its slot has a worker again, and adopted again later',
      ['a c', OTHERS],
      ['a next c', RELEASED],
      ['a next c', {}],
      ['a c', OTHERS],
    ],
    [
      'is adopted by a worker that becomes ready later',
      ['a', { a: 'adopt 1, adopt 2' }],
      ['a next', { a: 'release 1', next: 'adopt 2' }],
    ],
    [
      'waits for the first worker that becomes ready if no worker is left',
      ['', {}],
      ['next', { next: 'adopt 0, adopt 2' }],
    ],
    ['stays adopted when another one is adopted', ['a b', BOTH], ['a', { a: 'adopt 1' }]],
  ])('%s', async (_, ...steps) => {
    const { settle, sockets, a, b, c } = await serving();
    const workers = { a, b, c, next: new Worker(1) };
    const names = Object.keys(workers) as (keyof typeof workers)[];
    for (const [present, sent] of steps) {
      settle(...names.filter((name) => present.includes(name)).map((name) => workers[name]));
      const all = names.map((name) => [name, workers[name].fresh()]);
      expect(Object.fromEntries(all.filter(([, text]) => text !== ''))).toEqual(sent);
    }
    const { slot } = a.sent('adopt').at(-1) ?? {};
    if (slot !== undefined) expect(a.handles).toContain(sockets[slot]!.handle);
  });

  it.each(['starting', 'draining', 'exited'] as const)(
    'is also one with a %s worker, which adopts no other',
    async (state) => {
      const { settle, a, b, fresh } = await serving();
      b.enter(state);
      settle(a, b);
      expect(fresh()).toEqual(['adopt 1, adopt 2', '', '']);
    },
  );
});

describe('a socket whose worker does not answer', () => {
  it.each([
    [1_999, '', ''],
    [2_000, 'adopt 1', 'release 1'],
  ])('for %d ms: the others get %j until it answers', async (ms, adopted, released) => {
    const { settle, a, b, c, fresh } = await serving();
    b.silentFor(ms);
    settle(a, b, c);
    expect(fresh()).toEqual([adopted, '', adopted]);
    b.enter('ready');
    settle(a, b, c);
    expect(fresh()).toEqual([released, '', released]);
  });
});

describe('one socket for all', () => {
  it('is adopted by no one', async () => {
    const { settle } = await start(2, 'shared');
    const idle = new Worker(1);
    settle(idle);
    expect(idle.fresh()).toBe('');
  });

  it('is the one of node:cluster with round-robin', async () => {
    cluster.schedulingPolicy = cluster.SCHED_NONE;
    const { listening, opened } = await start(2, 'round-robin');
    const worker = new Worker(0, 'starting');
    listening.grant(worker.handle);
    expect([worker.inbox, worker.handles]).toEqual([['listen'], [undefined]]);
    expect(opened[0]!.closed).toBe(1);
    expect(cluster.schedulingPolicy).toBe(cluster.SCHED_RR);
  });
});

describe('a Node version without net._createServerHandle', () => {
  const withoutHandle = (balancing: BalancingStrategy) => {
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
    await expect(refused).rejects.toThrow(`balancing '${balancing}' needs net._createServerHandle`);
  });
});

describe('the default address', () => {
  const settled = () => new Promise((resolve) => setImmediate(resolve));

  it('is not bound if no worker asks for it', async () => {
    const { listening, opened } = closed(2, 'ports');
    listening.reserve(4);
    listening.settle([], 0);
    expect([listening.balancing, listening.ports]).toEqual(['none', []]);
    listening.close();
    await settled();
    expect(opened).toEqual([]);
  });

  it('is bound once, by the first worker that asks, for as many slots as there are then', async () => {
    const { listening, opened, sockets } = closed(2, 'ports');
    const workers = [0, 1, 2].map((slot) => new Worker(slot, 'starting'));
    listening.reserve(3);
    for (const worker of workers) listening.grant(worker.handle);
    await settled();
    expect([opened.length, listening.ports]).toEqual([1, [3_000, 3_001, 3_002]]);
    expect(workers.map(({ handles }) => handles[0])).toEqual(sockets.map(({ handle }) => handle));
  });

  it('is refused with the reason of the system, and tried again for the next worker', async () => {
    const { listening, refuse } = closed(2, 'shared');
    refuse.openings = 1;
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
    const { listening, opened } = closed(2, 'shared');
    listening.grant(new Worker(0, 'starting').handle);
    listening.close();
    await settled();
    expect(opened[0]!.closed).toBe(1);
  });
});

it('an accept queue of node:cluster that stays full is closed after 5 s', async () => {
  const patience = new AbortController();
  const timeout = vi.spyOn(AbortSignal, 'timeout').mockReturnValue(patience.signal);
  const handle = { fd: 2 ** 20, listen: vi.fn(), onconnection: () => {}, close: vi.fn() };
  const acceptors = new ClusterAcceptors();
  const server: { _handle: object | null } = { _handle: handle };
  channel(LISTENING).publish({ server });
  server._handle = null; // node:cluster has taken it
  const closed = acceptors.close();
  for (let turn = 0; turn < 10; turn += 1) {
    handle.onconnection();
    await new Promise(setImmediate);
  }
  expect(handle.close).not.toHaveBeenCalled();
  patience.abort();
  await closed;
  expect(handle.close).toHaveBeenCalledOnce();
  expect(timeout).toHaveBeenCalledExactlyOnceWith(5_000);
});
