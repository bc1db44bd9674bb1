import { describe, expect, it } from 'vitest';
import { ClusterAddressError } from '../../../../src/contract/errors/index.js';
import type { ListenTarget } from '../../../../src/contract/ipc/index.js';
import type {
  BoundSocket,
  ServerHandle,
} from '../../../../src/supervisor/listening/bound-socket.js';
import { SharedListening } from '../../../../src/supervisor/listening/shared-listening.js';
import { SlotListening } from '../../../../src/supervisor/listening/slot-listening.js';
import {
  type WorkerProcess,
  WorkerHandle,
} from '../../../../src/supervisor/processes/worker-handle.js';
import type { WorkerState } from '../../../../src/contract/snapshot/index.js';
import { knownWorker } from '../../support/fake-worker.js';

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

/** A worker that keeps the messages that it is sent, each with its handle. */
class Worker {
  readonly handle: WorkerHandle;
  #listens = false;
  readonly #sent: { type: string; slot?: number; target?: ListenTarget; handle: unknown }[] = [];

  constructor(slot: number, state: WorkerState = 'ready') {
    const channel: WorkerProcess = {
      isConnected: () => true,
      send: (message, handle, taken) => {
        this.#sent.push({ ...(message as { type: string }), handle });
        taken();
      },
      kill: () => {},
    };
    this.handle = new WorkerHandle({ slot, pid: 1_000 + slot, generation: 0 }, channel);
    this.enter(state);
  }

  enter(state: WorkerState, ping?: { seq: number; sentAt: number }): void {
    const known = state === 'exited' ? undefined : knownWorker({ state, ping });
    this.handle.known = () => known;
  }

  /** The messages sent since `told` was last read, for example `adopt 1`. */
  get told(): string[] {
    return this.#sent.splice(0).map(({ type, slot }) => `${type} ${slot}`);
  }

  get sent() {
    return this.#sent;
  }

  /** Grants a ready worker its socket, as before it became ready. That message is not kept. */
  listenOn(listening: SlotListening): void {
    if (this.#listens || this.handle.state !== 'ready') return;
    this.#listens = true;
    listening.grant(this.handle);
    this.#sent.pop();
  }

  /** The worker has not answered a ping for this time. */
  silentFor(ms: number): void {
    this.enter('ready', { seq: 1, sentAt: NOW - ms });
  }

  answer(): void {
    this.enter('ready');
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

/** Workers of slots 0 to `count` - 1. */
const workersOf = (count: number) => Array.from({ length: count }, (_, slot) => new Worker(slot));

describe('sockets of slots', () => {
  it('are bound one for each slot, and granted to its worker', () => {
    const { listening, sockets } = start(3);
    for (const slot of [2, 0]) {
      const worker = new Worker(slot, 'starting');
      listening.grant(worker.handle);
      expect(worker.sent).toMatchObject([
        { type: 'listen', target: { kind: 'tcp', port: 3_000 + slot, host: '127.0.0.1' } },
      ]);
      expect(worker.sent[0]!.handle).toBe(sockets[slot]!.handle);
    }
  });

  it('are the same for each worker that a slot has', () => {
    const { listening, sockets } = start(1);
    const [first, second] = [new Worker(0), new Worker(0, 'starting')];
    listening.grant(first.handle);
    listening.grant(second.handle);
    expect(second.sent[0]!.handle).toBe(sockets[0]!.handle);
    expect(sockets).toHaveLength(1);
  });

  it('are named by the address of the first', () => {
    expect(start(3).listening.url).toBe('http://127.0.0.1:3000');
  });

  it.each([
    ['ports', [3_000, 3_001, 3_002]],
    ['reuse-port', []],
  ] as const)('of the strategy %s tell ports %j', (balancing, ports) => {
    const { listening } = start(3, { balancing });
    expect([listening.balancing, listening.ports]).toEqual([balancing, ports]);
  });

  it('are all closed with the cluster, each once', () => {
    const { listening, sockets } = start(3);
    listening.close();
    expect(sockets.map(({ closed }) => closed)).toEqual([1, 1, 1]);
  });
});

describe('more slots', () => {
  it('have sockets added, and those there were stay', () => {
    const { listening, sockets } = start(2, { balancing: 'ports' });
    listening.reserve(4);
    expect(listening.ports).toEqual([3_000, 3_001, 3_002, 3_003]);
    expect(sockets.map(({ closed }) => closed)).toEqual([0, 0, 0, 0]);
  });

  it('bind nothing where there are as many, or fewer', () => {
    const { listening, sockets } = start(3);
    listening.reserve(3);
    listening.reserve(1);
    listening.reserve(3);
    expect(sockets).toHaveLength(3);
    expect(sockets.map(({ closed }) => closed)).toEqual([0, 0, 0]);
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
  });

  it('can be had once what was in the way is gone', () => {
    const { listening, refuse } = start(1, { balancing: 'ports' });
    refuse.from = 2;
    expect(() => listening.reserve(3)).toThrow(ClusterAddressError);
    refuse.from = -1;
    listening.reserve(3);
    expect(listening.ports).toEqual([3_000, 3_001, 3_002]);
  });

  it('that were refused at start leave no socket behind', () => {
    expect(() => start(3, { taken: 1 })).toThrow(ClusterAddressError);
  });
});

describe('a socket whose worker is gone', () => {
  it('is taken over by every other worker, with its handle', () => {
    const { settle, sockets } = start(3);
    const [a, b, c] = workersOf(3);
    settle(a!, b!, c!);
    expect([a!.told, b!.told, c!.told]).toEqual([[], [], []]);

    settle(a!, c!);
    for (const worker of [a!, c!]) {
      expect(worker.sent[0]!.handle).toBe(sockets[1]!.handle);
      expect(worker.told).toEqual(['adopt 1']);
    }
  });

  it('is offered once, however often things settle', () => {
    const { settle } = start(2);
    const [a, b] = workersOf(2);
    settle(a!, b!);
    for (let i = 0; i < 5; i += 1) settle(a!);
    expect(a!.told).toEqual(['adopt 1']);
  });

  it.each(['starting', 'draining', 'exited'] as const)(
    'counts as such also where its worker is %s',
    (state) => {
      const { settle } = start(2);
      const [a, b] = workersOf(2);
      settle(a!, b!);
      settle(a!, new Worker(1, state));
      expect(a!.told).toEqual(['adopt 1']);
    },
  );

  it('is let go once its slot has a worker again, and never offered to that one', () => {
    const { settle } = start(3);
    const [a, b, c] = workersOf(3);
    settle(a!, b!, c!);
    settle(a!, c!);
    expect([a!.told, c!.told]).toEqual([['adopt 1'], ['adopt 1']]);
    const next = new Worker(1);
    settle(a!, next, c!);
    expect([a!.told, next.told, c!.told]).toEqual([['release 1'], [], ['release 1']]);
    settle(a!, next, c!);
    expect([a!.told, next.told, c!.told]).toEqual([[], [], []]);
  });

  it('is offered to a worker that becomes ready later', () => {
    const { settle } = start(3);
    const [a, b, c] = workersOf(3);
    settle(a!, b!, c!);
    settle(a!);
    expect(a!.told).toEqual(['adopt 1', 'adopt 2']);
    const next = new Worker(1);
    settle(a!, next);
    expect([a!.told, next.told]).toEqual([['release 1'], ['adopt 2']]);
  });

  it('waits where no worker is left, and is taken over by the first that comes', () => {
    const { settle } = start(2);
    const [a, b] = workersOf(2);
    settle(a!, b!);
    settle();
    const next = new Worker(0);
    settle(next);
    expect(next.told).toEqual(['adopt 1']);
  });

  it('is kept while a second one is taken over', () => {
    const { settle } = start(3);
    const [a, b, c] = workersOf(3);
    settle(a!, b!, c!);
    settle(a!, b!);
    settle(a!);
    expect(a!.told).toEqual(['adopt 2', 'adopt 1']);
  });

  it('is not told of to who is on its way out', () => {
    const { settle } = start(3);
    const [a, b, c] = workersOf(3);
    settle(a!, b!, c!);
    c!.enter('draining');
    settle(a!, c!);
    expect([a!.told.toSorted(), c!.told]).toEqual([['adopt 1', 'adopt 2'], []]);
  });

  it('is taken over once more by a worker that had let it go', () => {
    const { settle } = start(2);
    const [a, b] = workersOf(2);
    settle(a!, b!);
    settle(a!);
    settle(a!, new Worker(1));
    settle(a!);
    expect(a!.told).toEqual(['adopt 1', 'release 1', 'adopt 1']);
  });
});

describe('a socket that no worker was given', () => {
  it('is adopted by nobody: nothing can wait in it', () => {
    const { listening, settle } = start(2);
    const [a, b] = workersOf(2);
    settle(a!);
    listening.reserve(4);
    settle(a!, new Worker(1, 'starting'), new Worker(2, 'starting'));
    expect(a!.told).toEqual([]);
    settle(a!, b!);
    settle(a!);
    expect(a!.told).toEqual(['adopt 1']);
  });

  it('is adopted once it was given to one that never became ready', () => {
    const { listening, settle } = start(2);
    const [a] = workersOf(1);
    const failing = new Worker(1, 'starting');
    settle(a!, failing);
    expect(a!.told).toEqual([]);
    listening.grant(failing.handle);
    failing.enter('exited');
    settle(a!);
    expect(a!.told).toEqual(['adopt 1']);
  });
});

describe('a socket whose slot was scaled away', () => {
  it('stays with the others, which serve what still comes to it', () => {
    const { settle } = start(3, { balancing: 'ports' });
    const [a, b, c] = workersOf(3);
    settle(a!, b!, c!);
    c!.enter('draining');
    settle(a!, b!, c!);
    settle(a!, b!);
    expect([a!.told, b!.told]).toEqual([['adopt 2'], ['adopt 2']]);
  });

  it('is let go once its slot is wanted again and has a worker', () => {
    const { listening, settle, sockets } = start(2);
    const [a, b] = workersOf(2);
    settle(a!, b!);
    settle(a!);
    listening.reserve(2);
    settle(a!, new Worker(1));
    expect(a!.told).toEqual(['adopt 1', 'release 1']);
    expect(sockets).toHaveLength(2);
  });
});

describe('a socket whose worker does not answer', () => {
  it.each([
    [1_999, []],
    [2_000, ['adopt 1']],
  ])('for %d ms makes the others do %j', (ms, told) => {
    const { settle } = start(2);
    const [a, b] = workersOf(2);
    settle(a!, b!);
    b!.silentFor(ms);
    settle(a!, b!);
    expect([a!.told, b!.told]).toEqual([told, []]);
  });

  it('is let go once that answers again', () => {
    const { settle } = start(2);
    const [a, b] = workersOf(2);
    b!.silentFor(5_000);
    settle(a!, b!);
    b!.answer();
    settle(a!, b!);
    expect([a!.told, b!.told]).toEqual([['adopt 1', 'release 1'], []]);
  });

  it('is served where its slot has two workers, one of which answers', () => {
    const { settle } = start(2);
    const [a, b] = workersOf(2);
    const candidate = new Worker(1);
    b!.silentFor(5_000);
    settle(a!, b!, candidate);
    expect([a!.told, b!.told, candidate.told]).toEqual([[], [], []]);
  });

  it('is taken over by whoever is blocked too, for when it goes on: nobody else is there', () => {
    const { settle } = start(2);
    const [a, b] = workersOf(2);
    settle(a!, b!);
    a!.silentFor(5_000);
    b!.silentFor(5_000);
    settle(a!, b!);
    expect([a!.told, b!.told]).toEqual([['adopt 1'], ['adopt 0']]);
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
      expect(worker.sent).toMatchObject([{ type: 'listen', target: socket.target }]);
      expect(worker.sent[0]!.handle).toBe(socket.handle);
    }
  });

  it('is granted as an address alone where none is held: node:cluster does the rest', () => {
    const worker = new Worker(0, 'starting');
    shared(false).listening.grant(worker.handle);
    expect(worker.sent).toMatchObject([{ type: 'listen', handle: undefined }]);
  });

  it('has no ports of slots, whatever their number, and needs nobody to take it over', () => {
    const { listening } = shared();
    const worker = new Worker(0);
    listening.reserve();
    listening.settle();
    expect([listening.url, listening.ports, worker.told]).toEqual([
      'http://127.0.0.1:3000',
      [],
      [],
    ]);
  });

  it('is closed with the cluster', () => {
    const { socket, listening } = shared();
    listening.close();
    expect(socket.closed).toBe(1);
  });

  it.each(['shared', 'round-robin'] as const)('knows its strategy: %s', (balancing) => {
    expect(new SharedListening(balancing, {} as BoundSocket).balancing).toBe(balancing);
  });
});
