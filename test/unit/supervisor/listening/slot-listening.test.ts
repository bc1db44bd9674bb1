import { describe, expect, it } from 'vitest';
import { ClusterAddressError } from '../../../../src/contract/errors/index.js';
import type { ListenTarget } from '../../../../src/contract/messages.js';
import type {
  BoundSocket,
  ServerHandle,
} from '../../../../src/supervisor/listening/bound-socket.js';
import { SharedListening } from '../../../../src/supervisor/listening/shared-listening.js';
import { SlotListening } from '../../../../src/supervisor/listening/slot-listening.js';
import type { WorkerState } from '../../../../src/contract/snapshot/index.js';
import { FakeWorker } from '../../support/fake-worker.js';

const NOW = 100_000;

/** A bound socket that knows whether it was closed. */
class FakeSocket {
  readonly handle: ServerHandle & { readonly name: string };
  readonly target: ListenTarget;
  closed = 0;

  constructor(readonly port: number) {
    this.handle = { name: `socket of port ${port}`, close: () => {} };
    this.target = { kind: 'tcp', port, host: '127.0.0.1' };
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
  listenOn(listening: SlotListening): void {
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

function start(slots = 3, { balancing = 'reuse-port' as 'reuse-port' | 'ports', taken = -1 } = {}) {
  const sockets: FakeSocket[] = [];
  const refuse = { from: taken };
  const listening = new SlotListening(balancing, (slot) => {
    if (slot === refuse.from) {
      throw new ClusterAddressError(`port ${slot}`, { code: 'EADDRINUSE', message: 'taken' });
    }
    const socket = new FakeSocket(3_000 + slot);
    sockets.push(socket);
    return socket as unknown as BoundSocket;
  });
  listening.reserve(slots);
  return {
    listening,
    sockets,
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

/** Three sockets, each with a worker that serves it. */
function serving() {
  const started = start(3);
  const [a, b, c] = [new Worker(0), new Worker(1), new Worker(2)];
  started.settle(a, b, c);
  expect([a.told, b.told, c.told]).toEqual([[], [], []]);
  return { ...started, a, b, c };
}

const BOTH = { a: 'adopt 2', b: 'adopt 2' };

describe('sockets of slots', () => {
  it('are bound one for each slot, and granted to its worker', () => {
    const { listening, sockets } = start(3);
    for (const slot of [2, 0]) {
      const worker = new Worker(slot, 'starting');
      listening.grant(worker.handle);
      expect(worker.messages).toMatchObject([
        { type: 'listen', target: { kind: 'tcp', port: 3_000 + slot, host: '127.0.0.1' } },
      ]);
      expect(worker.handles[0]).toBe(sockets[slot]!.handle);
    }
  });

  it('are the same for each worker that a slot has', () => {
    const { listening, sockets } = start(1);
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
    (balancing, ports) => {
      expect(start(3, { balancing }).listening).toMatchObject({
        balancing,
        ports,
        url: 'http://127.0.0.1:3000',
      });
    },
  );

  it('are all closed with the cluster, each once', () => {
    const { listening, sockets } = start(3);
    listening.close();
    expect(sockets.map(({ closed }) => closed)).toEqual([1, 1, 1]);
  });
});

describe('more slots', () => {
  it('have sockets added, those there were stay, and no fewer slots close one', () => {
    const { listening, sockets } = start(2, { balancing: 'ports' });
    for (const slots of [4, 4, 1, 4]) listening.reserve(slots);
    expect(listening.ports).toEqual([3_000, 3_001, 3_002, 3_003]);
    expect(sockets.map(({ closed }) => closed)).toEqual([0, 0, 0, 0]);
  });

  it('are all refused where one cannot be bound: what was bound for them is closed', () => {
    const { listening, sockets, refuse } = start(2, { balancing: 'ports' });
    refuse.from = 4;
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

  it('that were refused at start leave no socket behind', () => {
    expect(() => start(3, { taken: 1 })).toThrow(ClusterAddressError);
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
  ])('%s', (_, ...steps) => {
    const { settle, a, b, c } = serving();
    const workers = { a, b, c, next: new Worker(1) };
    const names = Object.keys(workers) as (keyof typeof workers)[];
    for (const [present, told] of steps) {
      settle(...names.filter((name) => present.includes(name)).map((name) => workers[name]));
      const all = names.map((name) => [name, workers[name].told.join(', ')]);
      expect(Object.fromEntries(all.filter(([, text]) => text !== ''))).toEqual(told);
    }
  });

  it('is taken over with its handle', () => {
    const { settle, sockets, a, c } = serving();
    settle(a, c);
    expect(a.handles.at(-1)).toBe(sockets[1]!.handle);
  });

  it.each(['starting', 'draining', 'exited'] as const)(
    'counts as such also where its worker is %s, which is not told of others',
    (state) => {
      const { settle, a, b } = serving();
      b.enter(state);
      settle(a, b);
      expect([a.told.toSorted(), b.told]).toEqual([['adopt 1', 'adopt 2'], []]);
    },
  );

  it('is let go once its slot is wanted again and has a worker', () => {
    const { listening, settle, sockets, a, b } = serving();
    settle(a, b);
    listening.reserve(3);
    settle(a, b, new Worker(2));
    expect(a.told).toEqual(['adopt 2', 'release 2']);
    expect(sockets).toHaveLength(3);
  });
});

describe('a socket that no worker was given', () => {
  it('is adopted by nobody: nothing can wait in it', () => {
    const { listening, settle } = start(2);
    const [a, b] = [new Worker(0), new Worker(1)];
    settle(a);
    listening.reserve(4);
    settle(a, new Worker(1, 'starting'), new Worker(2, 'starting'));
    expect(a.told).toEqual([]);
    settle(a, b);
    settle(a);
    expect(a.told).toEqual(['adopt 1']);
  });

  it('is adopted once it was given to one that never became ready', () => {
    const { listening, settle } = start(2);
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
  ])('for %d ms makes the others do %j, until that answers again', (ms, told) => {
    const { settle, a, b, c } = serving();
    b.silentFor(ms);
    settle(a, b, c);
    expect([a.told, b.told, c.told]).toEqual([told, [], told]);
    b.enter('ready');
    settle(a, b, c);
    expect([a.told, b.told]).toEqual([told.map(() => 'release 1'), []]);
  });

  it('is served where its slot has two workers, one of which answers', () => {
    const { settle, a, b, c } = serving();
    const candidate = new Worker(1);
    b.silentFor(5_000);
    settle(a, b, c, candidate);
    expect([a, b, c, candidate].map(({ told }) => told)).toEqual([[], [], [], []]);
  });

  it('is taken over by whoever is blocked too, for when it goes on: nobody else is there', () => {
    const { settle, a, b, c } = serving();
    for (const worker of [a, b, c]) worker.silentFor(5_000);
    settle(a, b, c);
    expect([a.told, b.told]).toEqual([
      ['adopt 1', 'adopt 2'],
      ['adopt 0', 'adopt 2'],
    ]);
  });
});

describe('the shared socket', () => {
  function shared(held = true) {
    const socket = new FakeSocket(3_000);
    const listening = new SharedListening('shared', {
      target: socket.target,
      handle: held ? socket.handle : undefined,
      url: socket.url,
      close: () => socket.close(),
    } as unknown as BoundSocket);
    return { socket, listening };
  }

  it('is granted to every worker, whatever its slot', () => {
    const { socket, listening } = shared();
    for (const slot of [0, 7]) {
      const worker = new Worker(slot, 'starting');
      listening.grant(worker.handle);
      expect(worker.messages).toMatchObject([{ type: 'listen', target: socket.target }]);
      expect(worker.handles[0]).toBe(socket.handle);
    }
  });

  it('is granted as an address alone where none is held: node:cluster does the rest', () => {
    const worker = new Worker(0, 'starting');
    shared(false).listening.grant(worker.handle);
    expect([worker.inbox, worker.handles]).toEqual([['listen'], [undefined]]);
  });

  it('has no ports of slots, and is closed with the cluster', () => {
    const { socket, listening } = shared();
    expect([listening.url, listening.ports]).toEqual(['http://127.0.0.1:3000', []]);
    listening.close();
    expect(socket.closed).toBe(1);
  });

  it.each(['shared', 'round-robin'] as const)('knows its strategy: %s', (balancing) => {
    expect(new SharedListening(balancing, {} as BoundSocket).balancing).toBe(balancing);
  });
});
