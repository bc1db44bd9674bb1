import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { mergeMetrics } from '../../src/metrics/merge-metrics.js';
import { decodeMetrics, encodeMetrics } from '../../src/metrics/metric-json.js';
import { MetricsRelay } from '../../src/primary/metrics-relay.js';
import type { WorkerTable } from '../../src/primary/worker-table.js';
import type { ClusterSnapshot } from '../../src/snapshot/index.js';
import { FakeWorker } from './fake-worker.js';

const SNAPSHOT: ClusterSnapshot = {
  balancing: 'shared',
  ports: [],
  desired: 2,
  ready: 2,
  generation: 0,
  degraded: 0,
  reloads: { completed: 0, aborted: 0 },
  dismissed: [],
  workers: [],
};

/** A body that counts `n`. */
const body = (n: number) =>
  encodeMetrics([
    {
      name: 'c',
      help: 'c',
      type: 'counter',
      aggregator: 'sum',
      values: [{ labels: {}, value: n }],
    },
  ]);

const totalOf = (bodies: readonly string[]) =>
  mergeMetrics([], bodies.map(decodeMetrics))[0]?.values[0]?.value ?? 0;

/** As `MetricsEndpoint` does it in a worker. */
const fold = (bodies: readonly string[]) =>
  encodeMetrics(mergeMetrics([], bodies.map(decodeMetrics)));

// performance.now() and timers stand still until they are moved.
beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

function cluster(...workers: FakeWorker[]) {
  const live = [...workers];
  const table = {
    get workers() {
      return live.map(({ handle }) => handle);
    },
    snapshot: () => SNAPSHOT,
  };
  const relay = new MetricsRelay(table as unknown as WorkerTable);
  return {
    relay,
    live,
    /** `worker` asks, and sends its own metrics with the question. */
    ask: (worker: FakeWorker, id: number): void =>
      relay.collect(worker.handle, id, body(id), performance.now()),
    /** `worker` answers `collect`. */
    answer: (worker: FakeWorker, text: string): void =>
      relay.store(worker.handle, text, true, performance.now()),
    /** `worker` sends its metrics of its own accord. */
    push: (worker: FakeWorker, text: string): void =>
      relay.store(worker.handle, text, false, performance.now()),
    /** The process of `worker` ends. */
    die: (worker: FakeWorker): void => {
      live.splice(live.indexOf(worker), 1);
      worker.connected = false;
      worker.handle.enter('exited');
      relay.retire(worker.handle);
    },
  };
}

describe('a scrape', () => {
  it('asks every other worker, and is answered once all have', () => {
    const [a, b, c] = [0, 1, 2].map((slot) => new FakeWorker({ slot })) as [
      FakeWorker,
      FakeWorker,
      FakeWorker,
    ];
    const { ask, answer } = cluster(a, b, c);

    ask(a, 7);
    expect([a, b, c].map((worker) => worker.sent('collect').length)).toEqual([0, 1, 1]);
    answer(b, 'B');
    expect(a.sent('collected')).toEqual([]);
    answer(c, 'C');

    expect(a.sent('collected')).toMatchObject([
      {
        id: 7,
        snapshot: SNAPSHOT,
        workers: [
          { slot: 0, ageMs: 0, body: body(7) },
          { slot: 1, ageMs: 0, body: 'B' },
          { slot: 2, ageMs: 0, body: 'C' },
        ],
        retired: [],
      },
    ]);
  });

  it('of a single worker is answered at once', () => {
    const worker = new FakeWorker();
    const { ask } = cluster(worker);
    ask(worker, 1);
    expect(worker.sent('collected')).toHaveLength(1);
  });

  it('shares the collection that is under way, and each is answered with its id', () => {
    const [a, b] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
    const { ask, answer } = cluster(a, b);
    for (let id = 1; id <= 50; id += 1) ask(a, id);
    expect(b.sent('collect')).toHaveLength(1);

    answer(b, 'B');
    expect(a.sent('collected').map(({ id }) => id)).toEqual(
      Array.from({ length: 50 }, (_, i) => i + 1),
    );
    expect(b.sent('collected')).toEqual([]);
  });

  it('does not wait for a worker that asks itself: its metrics came with the question', () => {
    const [a, b] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
    const { ask } = cluster(a, b);
    ask(a, 1);
    ask(b, 2);
    expect(a.sent('collected')).toMatchObject([{ id: 1 }]);
    expect(b.sent('collected')).toMatchObject([{ id: 2 }]);
  });

  it('after it begins anew', () => {
    const [a, b] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
    const { ask, answer } = cluster(a, b);
    ask(a, 1);
    answer(b, 'old');
    ask(a, 2);
    expect(a.sent('collected')).toHaveLength(1);
    answer(b, 'new');
    expect(a.sent('collected')[1]!.workers[1]).toMatchObject({ body: 'new' });
  });

  it('ends at 500 ms without a worker that is blocked, whose last metrics stand for it', () => {
    const [a, b] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
    const { ask, push } = cluster(a, b);
    push(b, 'before');
    vi.advanceTimersByTime(4_000);
    ask(a, 1);

    vi.advanceTimersByTime(499);
    expect(a.sent('collected')).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(a.sent('collected')[0]!.workers).toEqual([
      { slot: 0, ageMs: 500, body: body(1) },
      { slot: 1, ageMs: 4_500, body: 'before' },
    ]);
  });

  it('is answered once, however late a worker answers', () => {
    const [a, b] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
    const { ask, answer } = cluster(a, b);
    ask(a, 1);
    vi.advanceTimersByTime(500);
    answer(b, 'late');
    vi.advanceTimersByTime(10_000);
    expect(a.sent('collected')).toHaveLength(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('goes on while a worker only pushes its metrics, which is no answer', () => {
    const [a, b] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
    const { ask, answer, push } = cluster(a, b);
    ask(a, 1);
    push(b, 'pushed');
    expect(a.sent('collected')).toEqual([]);
    answer(b, 'asked');
    expect(a.sent('collected')[0]!.workers[1]).toMatchObject({ body: 'asked' });
  });

  it('has no deadline left behind once it is answered', () => {
    const [a, b] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
    const { ask, answer } = cluster(a, b);
    ask(a, 1);
    answer(b, 'B');
    expect(vi.getTimerCount()).toBe(0);
  });

  it('does not wait again for a worker that has not answered the last one', () => {
    const [a, b] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
    const { ask, answer } = cluster(a, b);
    ask(a, 1);
    vi.advanceTimersByTime(500);

    ask(a, 2);
    expect(a.sent('collected').map(({ id }) => id)).toEqual([1, 2]);
    expect(b.sent('collect')).toHaveLength(1);

    answer(b, 'back');
    ask(a, 3);
    expect(b.sent('collect')).toHaveLength(2);
    expect(a.sent('collected')).toHaveLength(2);
  });

  it('does not wait for a worker that takes no message', () => {
    const [a, b] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
    const { ask } = cluster(a, b);
    b.clogged = true;
    b.handle.send({ type: 'ping', seq: 1 });
    ask(a, 1);
    expect(b.sent('collect')).toEqual([]);
    expect(a.sent('collected')).toHaveLength(1);
  });

  it('does not wait for a worker that is starting, nor for one without a channel', () => {
    const a = new FakeWorker({ slot: 0 });
    const starting = new FakeWorker({ slot: 1, state: 'starting' });
    const gone = new FakeWorker({ slot: 2 });
    gone.connected = false;
    const { ask } = cluster(a, starting, gone);
    ask(a, 1);
    expect(a.sent('collected')[0]!.workers).toEqual([{ slot: 0, ageMs: 0, body: body(1) }]);
  });

  it('includes a worker that is draining', () => {
    const [a, b] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1, state: 'draining' })];
    const { ask, answer } = cluster(a, b);
    ask(a, 1);
    answer(b, 'B');
    expect(a.sent('collected')[0]!.workers).toHaveLength(2);
  });

  it('ends when the last worker that it waits for dies, and counts what that had sent', () => {
    const [a, b] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
    const { ask, die, push } = cluster(a, b);
    push(b, body(5));
    ask(a, 1);
    die(b);
    expect(a.sent('collected')).toMatchObject([{ workers: [{ slot: 0 }], retired: [body(5)] }]);
  });

  it('survives that the worker that asked is gone', () => {
    const [a, b] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
    const { ask, answer, die } = cluster(a, b);
    ask(a, 1);
    die(a);
    expect(() => answer(b, body(1))).not.toThrow();
    expect(a.sent('collected')).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('metrics of workers that are gone', () => {
  /** Lets `count` workers live and die, each of which has counted 1. */
  function deaths(count: number, { push, live, die }: ReturnType<typeof cluster>): void {
    for (let i = 0; i < count; i += 1) {
      const worker = new FakeWorker({ slot: 9 });
      live.push(worker);
      push(worker, body(1));
      die(worker);
    }
  }

  const retired = (asker: FakeWorker, { ask }: ReturnType<typeof cluster>): readonly string[] => {
    const before = asker.sent('collected').length;
    ask(asker, before + 1);
    vi.advanceTimersByTime(500);
    return asker.sent('collected')[before]!.retired;
  };

  it('stay', () => {
    const a = new FakeWorker();
    const all = cluster(a);
    deaths(3, all);
    expect(retired(a, all)).toEqual([body(1), body(1), body(1)]);
  });

  it('are none of a worker that had none', () => {
    const [a, b, c] = [0, 1, 2].map((slot) => new FakeWorker({ slot }));
    const all = cluster(a!, b!, c!);
    all.push(c!, '');
    all.die(b!);
    all.die(c!);
    expect(retired(a!, all)).toEqual([]);
  });

  it('are folded by a live worker once there are more than 8', () => {
    const a = new FakeWorker();
    const all = cluster(a);
    deaths(8, all);
    expect(a.sent('fold')).toEqual([]);
    deaths(1, all);
    expect(a.sent('fold')).toMatchObject([{ epoch: 0, bodies: Array(9).fill(body(1)) }]);

    all.relay.folded(a.handle, 0, 9, body(9));
    expect(retired(a, all)).toEqual([body(9)]);
  });

  it('that come during a fold are kept beside it', () => {
    const a = new FakeWorker();
    const all = cluster(a);
    deaths(12, all);
    expect(a.sent('fold')).toHaveLength(1);
    all.relay.folded(a.handle, 0, 9, body(9));
    expect(totalOf(retired(a, all))).toBe(12);
  });

  it('are all still there while a fold is under way', () => {
    const a = new FakeWorker();
    const all = cluster(a);
    deaths(9, all);
    expect(totalOf(retired(a, all))).toBe(9);
  });

  it('are not folded twice by an answer that is repeated', () => {
    const a = new FakeWorker();
    const all = cluster(a);
    deaths(9, all);
    all.relay.folded(a.handle, 0, 9, body(9));
    all.relay.folded(a.handle, 0, 9, body(9));
    all.relay.folded(a.handle, 0, 1, body(1_000));
    expect(totalOf(retired(a, all))).toBe(9);
  });

  it('are not changed by an answer of an older fold', () => {
    const a = new FakeWorker();
    const all = cluster(a);
    deaths(9, all);
    all.relay.folded(a.handle, 0, 9, body(9));
    deaths(8, all);
    expect(a.sent('fold')[1]).toMatchObject({ epoch: 1 });
    all.relay.folded(a.handle, 0, 9, body(9));
    expect(totalOf(retired(a, all))).toBe(17);
    all.relay.folded(a.handle, 1, 9, body(17));
    expect(retired(a, all)).toEqual([body(17)]);
  });

  it('are not changed by a worker that was not asked, nor by more than there was', () => {
    const [a, b] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
    const all = cluster(a, b);
    all.relay.folded(b.handle, 0, 0, body(1_000));
    deaths(9, all);
    all.relay.folded(b.handle, 0, 9, body(1_000));
    all.relay.folded(a.handle, 0, 10, body(1_000));
    expect(totalOf(retired(a, all))).toBe(9);
  });

  it('are folded by another worker where the one that was asked dies', () => {
    const [a, b] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
    const all = cluster(a, b);
    deaths(9, all);
    expect([a.sent('fold').length, b.sent('fold').length]).toEqual([1, 0]);

    all.die(a);
    expect(b.sent('fold')).toHaveLength(1);
    all.relay.folded(a.handle, 0, 9, body(1_000));
    expect(totalOf(retired(b, all))).toBe(9);
    all.relay.folded(b.handle, 0, 9, body(9));
    expect(retired(b, all)).toEqual([body(9)]);
  });

  it('wait for a worker that can fold them', () => {
    const all = cluster();
    deaths(20, all);
    const a = new FakeWorker({ state: 'starting' });
    all.live.push(a);
    all.relay.foldIfNeeded();
    expect(a.sent('fold')).toEqual([]);

    a.handle.enter('ready');
    all.relay.foldIfNeeded();
    expect(a.sent('fold')[0]!.bodies).toHaveLength(20);
  });

  it('take bounded memory, and lose nothing, over 1,000 deaths', () => {
    const [a, b] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
    const all = cluster(a, b);
    let answered = 0;
    let largest = 0;
    for (let i = 1; i <= 1_000; i += 1) {
      deaths(1, all);
      const asked = a.sent('fold');
      if (asked.length > answered) {
        answered = asked.length;
        const { epoch, bodies } = asked.at(-1)!;
        all.relay.folded(a.handle, epoch, bodies.length, fold(bodies));
      }
      if (i % 100 === 0) {
        const kept = retired(a, all);
        expect(totalOf(kept)).toBe(i);
        largest = Math.max(largest, kept.length, kept.join('').length / 1_000);
      }
    }
    expect(answered).toBe(Math.floor(999 / 8));
    expect(largest).toBeLessThanOrEqual(9);
  });
});
