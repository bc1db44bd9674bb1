import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { COLLECTION_TIMEOUT_MS } from '../../../../src/contract/snapshot/index.js';
import { body, relayOf, SNAPSHOT } from '../../support/fake-relay.js';
import { FakeWorker } from '../../support/fake-worker.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

function workersOf<N extends number>(count: N): FakeWorker[] {
  return Array.from({ length: count }, (_, slot) => new FakeWorker({ slot }));
}

const ids = (messages: readonly { id: number }[]) => messages.map(({ id }) => id);

describe('workers that ask while others do', () => {
  it('share one collection, and are each given all, by their own id', () => {
    const [a, b, c] = workersOf(3) as [FakeWorker, FakeWorker, FakeWorker];
    const { ask, answer } = relayOf(a, b, c);
    ask(a, 1);
    ask(b, 2);
    expect([a, b, c].map((worker) => worker.sent('collect').length)).toEqual([0, 1, 1]);
    answer(c, 'C');
    const workers = [
      { slot: 0, ageMs: 0, body: body(1) },
      { slot: 1, ageMs: 0, body: body(2) },
      { slot: 2, ageMs: 0, body: 'C' },
    ];
    expect(a.sent('collected')).toMatchObject([{ id: 1, snapshot: SNAPSHOT, workers }]);
    expect(b.sent('collected')).toMatchObject([{ id: 2, snapshot: SNAPSHOT, workers }]);
    expect(c.sent('collected')).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('a worker that asks twice, since it gave up the first time', () => {
  it('is given all for both questions', () => {
    const [a, b] = workersOf(2) as [FakeWorker, FakeWorker];
    const { ask } = relayOf(a, b);
    ask(a, 1);
    ask(a, 2);
    vi.advanceTimersByTime(COLLECTION_TIMEOUT_MS);
    expect(ids(a.sent('collected'))).toEqual([1, 2]);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('a worker that asked and dies', () => {
  it('is sent nothing, and the others that asked are given all', () => {
    const [a, b, c] = workersOf(3) as [FakeWorker, FakeWorker, FakeWorker];
    const { ask, answer, die } = relayOf(a, b, c);
    ask(a, 1);
    ask(b, 2);
    die(a);
    answer(c, 'C');
    expect(a.sent('collected')).toEqual([]);
    expect(b.sent('collected')).toMatchObject([
      { id: 2, workers: [{ slot: 1 }, { slot: 2 }], retired: [body(1)] },
    ]);
    expect(vi.getTimerCount()).toBe(0);
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

  it('is told at once where there are no workers', async () => {
    const { gather } = relayOf();
    const answers = gather();
    await tick();
    expect(answers).toEqual([{ snapshot: SNAPSHOT, workers: [], retired: [] }]);
    expect(vi.getTimerCount()).toBe(0);
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

  it('is given what does not change: a worker that dies a moment later is not counted twice', async () => {
    const [a] = workersOf(1) as [FakeWorker];
    const { gather, answer, die } = relayOf(a);
    const answers = gather();
    answer(a, body(1));
    die(a);
    await tick();
    expect(answers).toMatchObject([{ workers: [{ body: body(1) }], retired: [] }]);
  });
});

describe('a collection, whatever happens', () => {
  it('never asks a worker that has not answered the last one, and is over within its time', async () => {
    const workers = workersOf(4);
    const { ask, gather } = relayOf(...workers);
    for (let round = 0; round < 20; round += 1) {
      for (const worker of workers) ask(worker, round);
      const answers = gather();
      await vi.advanceTimersByTimeAsync(COLLECTION_TIMEOUT_MS);
      expect([answers.length, vi.getTimerCount()]).toEqual([1, 0]);
    }
    // Nobody answers `collect`.
    expect(workers.map((worker) => worker.sent('collected').length)).toEqual([20, 20, 20, 20]);
    expect(workers.map((worker) => worker.sent('collect').length)).toEqual([1, 1, 1, 1]);
  });
});
