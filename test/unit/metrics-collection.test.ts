import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { PrimaryMessage } from '../../src/ipc/index.js';
import { body, relayOf, SNAPSHOT } from './fake-relay.js';
import { FakeWorker } from './fake-worker.js';

/** How long the others wait for the worker that merges. */
const MERGE_TIMEOUT_MS = 150;

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

function workersOf<N extends number>(count: N): FakeWorker[] {
  return Array.from({ length: count }, (_, slot) => new FakeWorker({ slot }));
}

/** Three workers, of which the first two have asked; the third has answered. */
function collected() {
  const [a, b, c] = workersOf(3) as [FakeWorker, FakeWorker, FakeWorker];
  const all = relayOf(a, b, c);
  all.ask(a, 1);
  all.ask(b, 2);
  all.answer(c, 'C');
  return { ...all, a, b, c };
}

type CollectedMessage = PrimaryMessage & { type: 'collected' };

const ids = (messages: readonly { id: number }[]) => messages.map(({ id }) => id);

describe('workers that ask while others do', () => {
  it('share one collection: no worker is asked twice', () => {
    const { a, b, c } = collected();
    expect([a, b, c].map((worker) => worker.sent('collect').length)).toEqual([0, 1, 1]);
  });

  it('are given what the first of them merges, each by its own id', () => {
    const { a, b, c, merge } = collected();
    expect(a.sent('collected')).toMatchObject([{ id: 1, shared: true }]);
    expect(a.sent('collected')[0]!.workers.map((worker) => worker.body)).toEqual([
      body(1),
      body(2),
      'C',
    ]);
    expect([b.sent('collected'), b.sent('merged')]).toEqual([[], []]);

    merge(a, 'ALL');
    expect(b.sent('merged')).toEqual([
      {
        ns: 'nestjs-cluster',
        v: 1,
        type: 'merged',
        id: 2,
        snapshot: SNAPSHOT,
        ages: [
          { slot: 0, ageMs: 0 },
          { slot: 1, ageMs: 0 },
          { slot: 2, ageMs: 0 },
        ],
        body: 'ALL',
      },
    ]);
    expect([a.sent('merged'), c.sent('merged'), b.sent('collected')]).toEqual([[], [], []]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('are each given it, however many they are', () => {
    const workers = workersOf(8);
    const { ask, merge } = relayOf(...workers);
    workers.forEach((worker, i) => ask(worker, 10 + i));
    expect(workers.map((worker) => worker.sent('collected').length)).toEqual([
      1, 0, 0, 0, 0, 0, 0, 0,
    ]);
    merge(workers[0]!, 'ALL');
    expect(workers.slice(1).map((worker) => ids(worker.sent('merged')))).toEqual(
      [11, 12, 13, 14, 15, 16, 17].map((id) => [id]),
    );
  });

  it('are not waited for: their metrics came with the question', () => {
    const [a, b] = workersOf(2) as [FakeWorker, FakeWorker];
    const { ask } = relayOf(a, b);
    ask(a, 1);
    expect(a.sent('collected')).toEqual([]);
    ask(b, 2);
    expect(a.sent('collected')).toMatchObject([{ id: 1, shared: true }]);
  });

  it('while the first merges, are given what that merges too', () => {
    const { a, b, c, ask, merge } = collected();
    ask(c, 3);
    expect(c.sent('collected')).toEqual([]);
    merge(a, 'ALL');
    expect([b, c].map((worker) => worker.sent('merged')[0])).toMatchObject([
      { id: 2, body: 'ALL' },
      { id: 3, body: 'ALL' },
    ]);
  });

  it('are told the ages that the metrics had when all had answered', () => {
    const [a, b, c] = workersOf(3) as [FakeWorker, FakeWorker, FakeWorker];
    const { ask, push, merge } = relayOf(a, b, c);
    push(c, 'C');
    vi.advanceTimersByTime(4_000);
    ask(a, 1);
    ask(b, 2);
    vi.advanceTimersByTime(500);
    vi.advanceTimersByTime(100);
    merge(a, 'ALL');
    expect(b.sent('merged')[0]!.ages).toEqual([
      { slot: 0, ageMs: 500 },
      { slot: 1, ageMs: 500 },
      { slot: 2, ageMs: 4_500 },
    ]);
  });

  it('after the first has merged begin a new collection', () => {
    const { a, b, c, ask, answer, merge } = collected();
    merge(a, 'ALL');
    answer(b, 'B');
    ask(b, 4);
    expect(c.sent('collect')).toHaveLength(2);
    answer(a, 'A');
    answer(c, 'C2');
    expect(b.sent('collected')).toMatchObject([{ id: 4, shared: false }]);
    merge(a, 'LATE');
    expect(b.sent('merged')).toHaveLength(1);
  });
});

describe('a worker that asks alone', () => {
  it('shares with nobody, and the collection is over', () => {
    const [a, b] = workersOf(2) as [FakeWorker, FakeWorker];
    const { ask, answer, merge } = relayOf(a, b);
    ask(a, 1);
    answer(b, 'B');
    expect(a.sent('collected')).toMatchObject([{ id: 1, shared: false }]);
    expect(vi.getTimerCount()).toBe(0);
    merge(a, 'ALL');
    ask(b, 2);
    expect(a.sent('collect')).toHaveLength(1);
    expect([a.sent('merged'), b.sent('merged')]).toEqual([[], []]);
  });

  it('twice, since it gave up the first time, merges and is given the same', () => {
    const [a, b] = workersOf(2) as [FakeWorker, FakeWorker];
    const { ask, merge } = relayOf(a, b);
    ask(a, 1);
    ask(a, 2);
    vi.advanceTimersByTime(500);
    expect(a.sent('collected')).toMatchObject([{ id: 1, shared: true }]);
    merge(a, 'ALL');
    expect(a.sent('merged')).toMatchObject([{ id: 2, body: 'ALL' }]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('twice, and merges nothing for its first question, is given all for its second', () => {
    const [a, b] = workersOf(2) as [FakeWorker, FakeWorker];
    const { ask } = relayOf(a, b);
    ask(a, 1);
    ask(a, 2);
    vi.advanceTimersByTime(500 + MERGE_TIMEOUT_MS);
    expect(a.sent('collected')).toMatchObject([
      { id: 1, shared: true },
      { id: 2, shared: false },
    ]);
  });
});

describe('a worker that is to merge and does not', () => {
  it('is waited for 150 ms, then the next one merges', () => {
    const { a, b, c, ask, merge } = collected();
    ask(c, 3);
    vi.advanceTimersByTime(MERGE_TIMEOUT_MS - 1);
    expect(b.sent('collected')).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(b.sent('collected')).toMatchObject([{ id: 2, shared: true }]);
    expect(b.sent('collected')[0]!.workers).toEqual(a.sent('collected')[0]!.workers);

    merge(b, 'ALL OF B');
    expect(c.sent('merged')).toMatchObject([{ id: 3, body: 'ALL OF B' }]);
    expect([a.sent('merged'), b.sent('merged')]).toEqual([[], []]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('has done it where it answers late and before the next: who was given all meanwhile needs it no more', () => {
    const { a, b, c, ask, merge } = collected();
    ask(c, 3);
    vi.advanceTimersByTime(MERGE_TIMEOUT_MS);
    merge(a, 'LATE');
    expect(b.sent('merged')).toEqual([]);
    expect(c.sent('merged')).toMatchObject([{ body: 'LATE' }]);
    merge(b, 'ALL OF B');
    expect(c.sent('merged')).toHaveLength(1);
  });

  it('leaves the last one to merge for itself: nobody waits for that', () => {
    const { b } = collected();
    vi.advanceTimersByTime(MERGE_TIMEOUT_MS);
    expect(b.sent('collected')).toMatchObject([{ id: 2, shared: false }]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is passed over where it dies, at once', () => {
    const { a, b, c, ask, die, merge } = collected();
    ask(c, 3);
    die(a);
    expect(b.sent('collected')).toMatchObject([{ id: 2, shared: true }]);
    // Its time begins anew.
    vi.advanceTimersByTime(MERGE_TIMEOUT_MS - 1);
    merge(b, 'ALL');
    expect(c.sent('merged')).toMatchObject([{ id: 3, body: 'ALL' }]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is counted once where it dies while the others wait: as one that was there, not as gone too', () => {
    const { a, b, c, push, ask, die } = collected();
    ask(c, 3);
    push(a, body(100));
    die(a);
    const [{ workers, retired }] = b.sent('collected') as [CollectedMessage];
    expect(workers.map((worker) => worker.body)).toEqual([body(1), body(2), 'C']);
    expect(retired).toEqual([]);
  });

  it('is passed over until nobody is left, and the next question begins anew', () => {
    const { a, b, c, ask, die } = collected();
    die(a);
    die(b);
    expect(vi.getTimerCount()).toBe(0);
    ask(c, 3);
    expect(c.sent('collected')).toMatchObject([{ id: 3, shared: false }]);
  });
});

describe('a worker that asked twice and dies', () => {
  it('is waited for no more, for either question', () => {
    const [a, b, c, d] = workersOf(4) as [FakeWorker, FakeWorker, FakeWorker, FakeWorker];
    const { ask, answer, die } = relayOf(a, b, c, d);
    for (const [id, worker] of [a, b, a, c].entries()) ask(worker, id);
    answer(d, 'D');
    die(a);
    expect(b.sent('collected')).toMatchObject([{ id: 1, shared: true }]);
    vi.advanceTimersByTime(MERGE_TIMEOUT_MS);
    expect(c.sent('collected')).toMatchObject([{ id: 3, shared: false }]);
    expect([a.sent('merged'), vi.getTimerCount()]).toEqual([[], 0]);
  });
});

describe('a worker that asked and dies', () => {
  it('is sent nothing, and the one that merges goes on', () => {
    const { a, b, c, ask, die, merge } = collected();
    ask(c, 3);
    die(b);
    expect(a.sent('collected')).toHaveLength(1);
    merge(a, 'ALL');
    expect([b.sent('merged'), c.sent('merged').length]).toEqual([[], 1]);
  });

  it('before all have answered leaves the merging to the next', () => {
    const [a, b, c] = workersOf(3) as [FakeWorker, FakeWorker, FakeWorker];
    const { ask, answer, die } = relayOf(a, b, c);
    ask(a, 1);
    ask(b, 2);
    die(a);
    answer(c, 'C');
    expect(a.sent('collected')).toEqual([]);
    expect(b.sent('collected')).toMatchObject([{ id: 2, shared: false, retired: [body(1)] }]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('alone leaves nothing behind, and the next question begins anew', () => {
    const [a, b] = workersOf(2) as [FakeWorker, FakeWorker];
    const { ask, answer, die } = relayOf(a, b);
    ask(a, 1);
    die(a);
    answer(b, 'B');
    expect(vi.getTimerCount()).toBe(0);
    ask(b, 2);
    expect(b.sent('collected')).toMatchObject([{ id: 2, shared: false }]);
  });

  it('and is waited for no more where it had not answered', () => {
    const [a, b, c] = workersOf(3) as [FakeWorker, FakeWorker, FakeWorker];
    const { ask, answer, die } = relayOf(a, b, c);
    ask(a, 1);
    answer(b, 'B');
    die(c);
    expect(a.sent('collected')).toHaveLength(1);
  });
});

describe('what a worker merged', () => {
  it('can only be said by who was to merge it', () => {
    const { a, b, c, ask, merge } = collected();
    ask(c, 3);
    for (const worker of [b, c]) merge(worker, 'FORGED');
    expect([b, c].map((worker) => worker.sent('merged'))).toEqual([[], []]);
    merge(a, 'ALL');
    expect([b, c].map((worker) => worker.sent('merged')[0]!.body)).toEqual(['ALL', 'ALL']);
  });

  it('is not there before all have answered', () => {
    const [a, b, c] = workersOf(3) as [FakeWorker, FakeWorker, FakeWorker];
    const { ask, merge, answer } = relayOf(a, b, c);
    ask(a, 1);
    ask(b, 2);
    merge(a, 'FORGED');
    expect(b.sent('merged')).toEqual([]);
    answer(c, 'C');
    expect(a.sent('collected')).toHaveLength(1);
  });

  it('is dropped where nobody asked', () => {
    const [a] = workersOf(1) as [FakeWorker];
    const { merge } = relayOf(a);
    expect(() => merge(a, 'ALL')).not.toThrow();
  });

  it('is said once: what it says again finds nobody', () => {
    const { a, b, merge } = collected();
    merge(a, 'ALL');
    merge(a, 'AGAIN');
    expect(b.sent('merged')).toMatchObject([{ body: 'ALL' }]);
  });
});

describe('the primary that asks', () => {
  const tick = () => vi.advanceTimersByTimeAsync(0);

  it('asks every worker, and is told once all have answered', async () => {
    const [a, b] = workersOf(2) as [FakeWorker, FakeWorker];
    const { gather, answer } = relayOf(a, b);
    const answers = gather();
    expect([a, b].map((worker) => worker.sent('collect').length)).toEqual([1, 1]);
    answer(a, 'A');
    await tick();
    expect(answers).toEqual([]);
    answer(b, 'B');
    await tick();
    expect(answers).toEqual([
      {
        snapshot: SNAPSHOT,
        workers: [
          { slot: 0, ageMs: 0, body: 'A' },
          { slot: 1, ageMs: 0, body: 'B' },
        ],
        retired: [],
      },
    ]);
    expect([a, b].map((worker) => worker.sent('collected'))).toEqual([[], []]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is told at 500 ms what it has of a worker that does not answer', async () => {
    const [a] = workersOf(1) as [FakeWorker];
    const { gather, push } = relayOf(a);
    push(a, 'before');
    const answers = gather();
    await vi.advanceTimersByTimeAsync(499);
    expect(answers).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(answers).toMatchObject([{ workers: [{ slot: 0, ageMs: 500, body: 'before' }] }]);
  });

  it('is told at once where there are no workers', async () => {
    const { gather } = relayOf();
    const answers = gather();
    await tick();
    expect(answers).toEqual([{ snapshot: SNAPSHOT, workers: [], retired: [] }]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('joins what a worker has begun, and is told as that is', async () => {
    const [a, b] = workersOf(2) as [FakeWorker, FakeWorker];
    const { ask, answer, gather } = relayOf(a, b);
    ask(a, 1);
    const answers = gather();
    expect([a, b].map((worker) => worker.sent('collect').length)).toEqual([0, 1]);
    answer(b, 'B');
    await tick();
    expect(answers).toMatchObject([{ workers: [{ body: body(1) }, { body: 'B' }] }]);
    // The primary merges for itself: a worker that asked alone is not asked to share.
    expect(a.sent('collected')).toMatchObject([{ id: 1, shared: false }]);
  });

  it('is joined by a worker that asks', async () => {
    const [a, b] = workersOf(2) as [FakeWorker, FakeWorker];
    const { ask, answer, gather } = relayOf(a, b);
    const answers = gather();
    ask(a, 1);
    expect([a, b].map((worker) => worker.sent('collect').length)).toEqual([1, 1]);
    answer(b, 'B');
    await tick();
    expect([answers.length, ids(a.sent('collected'))]).toEqual([1, [1]]);
  });

  it('while a worker merges is told at once what that was given', async () => {
    const { a, b, merge, gather } = collected();
    const answers = gather();
    await tick();
    expect(answers).toMatchObject([{ workers: a.sent('collected')[0]!.workers }]);
    merge(a, 'ALL');
    expect(b.sent('merged')).toHaveLength(1);
    await tick();
    expect(answers).toHaveLength(1);
  });

  it('twice is told twice, and asks the workers once', async () => {
    const [a] = workersOf(1) as [FakeWorker];
    const { gather, answer } = relayOf(a);
    const [first, second] = [gather(), gather()];
    expect(a.sent('collect')).toHaveLength(1);
    answer(a, 'A');
    await tick();
    expect([first.length, second.length]).toEqual([1, 1]);
    const third = gather();
    expect(a.sent('collect')).toHaveLength(2);
    answer(a, 'A2');
    await tick();
    expect(third).toMatchObject([{ workers: [{ body: 'A2' }] }]);
  });

  it('is told where the last worker that it waits for dies', async () => {
    const [a] = workersOf(1) as [FakeWorker];
    const { gather, push, die } = relayOf(a);
    push(a, body(5));
    const answers = gather();
    die(a);
    await tick();
    expect(answers).toMatchObject([{ workers: [], retired: [body(5)] }]);
  });
});

describe('a collection, whatever happens', () => {
  it('never asks a worker that has not answered the last one, and is over within its time', async () => {
    const workers = workersOf(4);
    const { ask, gather } = relayOf(...workers);
    for (let round = 0; round < 20; round += 1) {
      for (const worker of workers) ask(worker, round);
      const answers = gather();
      await vi.advanceTimersByTimeAsync(500 + 4 * MERGE_TIMEOUT_MS);
      expect([answers.length, vi.getTimerCount()]).toEqual([1, 0]);
    }
    // Nobody answers `collect`, nobody merges: each has its own after the one before it.
    expect(workers.map((worker) => worker.sent('collected').length)).toEqual([20, 20, 20, 20]);
    expect(workers.map((worker) => worker.sent('collect').length)).toEqual([1, 1, 1, 1]);
  });
});
