import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  COLLECTION_TIMEOUT_MS,
  type CollectedMetrics,
} from '../../../src/contract/snapshot/index.js';
import { decodeMetrics } from '../../../src/contract/snapshot/metrics-body.js';
import { body, relayOf, SNAPSHOT } from '../support/fake-relay.js';
import { FakeWorker } from '../support/fake-worker.js';
import { counter } from '../support/metric-json.js';

// performance.now() and timers stand still until they are moved.
beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

/** A relay with two workers. */
function pair() {
  const [a, b] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
  return { a, b, ...relayOf(a, b) };
}

/** A worker is sent nothing that it does not take at once. */
function clog(worker: FakeWorker): void {
  worker.clogged = true;
  worker.handle.send({ type: 'ping', seq: 1 });
}

/** The answers to a worker's requests for metrics. */
const collected = (worker: FakeWorker) =>
  worker.sent('answer').map(({ id, result }) => ({ id, ...(result as CollectedMetrics) }));

describe('a scrape', () => {
  it('asks every other worker, and is answered once all have', () => {
    const { a, b, live, ask, answer } = pair();
    const c = new FakeWorker({ slot: 2 });
    live.push(c);

    ask(a, 7);
    expect([a, b, c].map((worker) => worker.sent('collect').length)).toEqual([0, 1, 1]);
    answer(b, 'B');
    expect(collected(a)).toEqual([]);
    answer(c, 'C');

    expect(collected(a)).toMatchObject([
      {
        id: 7,
        snapshot: SNAPSHOT,
        workers: [
          { slot: 0, generation: 0, ageMs: 0, body: body(7) },
          { slot: 1, generation: 0, ageMs: 0, body: 'B' },
          { slot: 2, generation: 0, ageMs: 0, body: 'C' },
        ],
        retired: [],
      },
    ]);
    expect([collected(b), collected(c)]).toEqual([[], []]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('ends at 500 ms without a worker that is blocked, whose last metrics stand for it', () => {
    const { a, b, ask, answer, push } = pair();
    push(b, 'before');
    vi.advanceTimersByTime(4_000);
    ask(a, 1);

    vi.advanceTimersByTime(499);
    expect(collected(a)).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(collected(a)[0]!.workers).toEqual([
      { slot: 0, generation: 0, ageMs: 500, body: body(1) },
      { slot: 1, generation: 0, ageMs: 4_500, body: 'before' },
    ]);

    answer(b, 'late');
    vi.advanceTimersByTime(10_000);
    expect(collected(a)).toHaveLength(1);
  });

  it('does not wait again for a worker that has not answered the last one', () => {
    const { a, b, ask, answer } = pair();
    ask(a, 1);
    vi.advanceTimersByTime(500);

    ask(a, 2);
    expect(collected(a).map(({ id }) => id)).toEqual([1, 2]);
    expect(b.sent('collect')).toHaveLength(1);

    answer(b, 'back');
    ask(a, 3);
    expect(b.sent('collect')).toHaveLength(2);
    expect(collected(a)).toHaveLength(2);
  });

  it.each<[what: string, change: (worker: FakeWorker) => void]>([
    ['takes no message', clog],
    ['is starting', (worker) => worker.enter('starting')],
    ['has no channel', (worker) => void (worker.connected = false)],
  ])('does not wait for a worker that %s', (_, change) => {
    const { a, b, ask } = pair();
    change(b);
    ask(a, 1);
    expect(b.sent('collect')).toEqual([]);
    expect(collected(a)[0]!.workers).toEqual([{ slot: 0, generation: 0, ageMs: 0, body: body(1) }]);
  });

  it('includes a worker that is draining', () => {
    const { a, b, ask, answer } = pair();
    b.enter('draining');
    ask(a, 1);
    answer(b, 'B');
    expect(collected(a)[0]!.workers).toHaveLength(2);
  });

  it('ends when the last worker that it waits for dies, and counts what that had sent', () => {
    const { a, b, ask, die, push } = pair();
    push(b, body(5));
    ask(a, 1);
    die(b);
    expect(collected(a)).toMatchObject([{ workers: [{ slot: 0 }], retired: [body(5)] }]);
  });

  it('survives that the worker that asked is gone', () => {
    const { a, b, ask, answer, die } = pair();
    ask(a, 1);
    die(a);
    expect(() => answer(b, body(1))).not.toThrow();
    expect(collected(a)).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('workers that ask while others do', () => {
  it('share one collection, and are each given all, by their own id', () => {
    const { a, b, live, ask, answer } = pair();
    const c = new FakeWorker({ slot: 2 });
    live.push(c);
    ask(a, 1);
    ask(a, 2); // It gave up the first time.
    ask(b, 3);
    expect([a, b, c].map((worker) => worker.sent('collect').length)).toEqual([0, 1, 1]);
    answer(c, 'C');
    const workers = [{ body: body(2) }, { body: body(3) }, { body: 'C' }];
    expect(collected(a)).toMatchObject([
      { id: 1, workers },
      { id: 2, workers },
    ]);
    expect(collected(b)).toMatchObject([{ id: 3, workers }]);
    expect(collected(c)).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('never ask a worker that has not answered the last time, and wait no longer than their time', async () => {
    const { a, b, ask, gather } = pair();
    for (let round = 0; round < 20; round += 1) {
      for (const worker of [a, b]) ask(worker, round);
      const answers = gather();
      await vi.advanceTimersByTimeAsync(COLLECTION_TIMEOUT_MS);
      expect([answers.length, vi.getTimerCount()]).toEqual([1, 0]);
    }
    expect([a, b].map((worker) => collected(worker).length)).toEqual([20, 20]);
    expect([a, b].map((worker) => worker.sent('collect').length)).toEqual([1, 1]);
  });
});

describe('the primary that asks', () => {
  const tick = () => vi.advanceTimersByTimeAsync(0);

  it('asks every worker, is joined by one that asks, and is told once all have answered', async () => {
    const { a, b, ask, answer, gather } = pair();
    const answers = gather();
    ask(a, 1);
    expect([a, b].map((worker) => worker.sent('collect').length)).toEqual([1, 1]);
    await tick();
    expect(answers).toEqual([]);
    answer(b, 'B');
    await tick();
    expect(answers).toMatchObject([{ workers: [{ body: body(1) }, { body: 'B' }], retired: [] }]);
    expect(collected(a)).toHaveLength(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is told at once where there are no workers', async () => {
    const answers = relayOf().gather();
    await tick();
    expect(answers).toEqual([{ snapshot: SNAPSHOT, workers: [], retired: [] }]);
  });

  it('is given what does not change: a worker that dies a moment later is not counted twice', async () => {
    const a = new FakeWorker();
    const { gather, answer, die } = relayOf(a);
    const answers = gather();
    answer(a, body(1));
    die(a);
    await tick();
    expect(answers).toMatchObject([{ workers: [{ body: body(1) }], retired: [] }]);
  });
});

describe('what workers that have ended had counted', () => {
  it('is one body for each slot, however many have ended', async () => {
    const { push, live, die, gather } = relayOf();
    for (let i = 0; i < 300; i += 1) {
      const worker = new FakeWorker({ slot: i % 2 });
      live.push(worker);
      push(worker, body(i % 2 === 0 ? 1 : 0.5));
      die(worker);
    }
    const [answer] = await settled(gather());
    expect(answer!.retired.map(decodeMetrics)).toEqual([[counter(150)], [counter(75)]]);
  });

  it('is nothing for a worker that had no metrics', async () => {
    const { a, b, die, push, gather } = pair();
    push(a, '');
    die(a);
    die(b);
    expect(await settled(gather())).toMatchObject([{ retired: [] }]);
  });
});

/** The answers, once those that are there have arrived. */
async function settled<T>(answers: T[]): Promise<T[]> {
  await vi.advanceTimersByTimeAsync(0);
  return answers;
}

describe('a message that cannot be sent', () => {
  it('does not keep the next scrape from being answered', () => {
    const { a, b, ask, answer } = pair();
    const send = vi.spyOn(a.handle, 'send').mockImplementationOnce(() => {
      throw new RangeError('Invalid string length');
    });
    ask(a, 1);
    expect(() => answer(b, 'B')).toThrow('Invalid string length');
    send.mockRestore();
    expect(vi.getTimerCount()).toBe(0);
    ask(a, 2);
    answer(b, 'B');
    expect(collected(a)).toMatchObject([{ id: 2 }]);
  });
});
