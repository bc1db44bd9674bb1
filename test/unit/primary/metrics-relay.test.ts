import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { CollectedMetrics } from '../../../src/contract/snapshot/types.js';
import { decodeMetrics } from '../../../src/contract/snapshot/metrics-body.js';
import { MetricsRelay } from '../../../src/primary/metrics-relay.js';
import type { WorkerTable } from '../../../src/primary/worker-table.js';
import { body, SNAPSHOT } from '../support/fake-relay.js';
import { FakeWorker } from '../support/fake-worker.js';
import { counter } from '../support/metric-json.js';

// performance.now() and timers stand still until they are moved.
beforeEach(() => vi.useFakeTimers());

/** A relay with workers in the slots from 0 on. */
function start(count: number) {
  const workers = Array.from({ length: count }, (_, slot) => new FakeWorker({ slot }));
  const live = [...workers];
  const table = { snapshot: () => SNAPSHOT } as unknown as WorkerTable;
  Object.defineProperty(table, 'workers', { get: () => live.map(({ handle }) => handle) });
  const relay = new MetricsRelay(table);
  const answers: (CollectedMetrics & { by: FakeWorker | 'primary' })[] = [];
  const note = (by: FakeWorker | 'primary') => (collected: CollectedMetrics) =>
    void answers.push({ ...collected, by });
  return {
    workers,
    live,
    /** The answers to all requests, by the requester. */
    answers,
    /** A worker asks, and sends metrics with the number `n` along with the request. */
    ask: (worker: FakeWorker, n = 1): void => {
      relay.store(worker.handle, body(n), performance.now());
      void relay.collect(worker.handle).then(note(worker));
    },
    askByPrimary: () => void relay.collect().then(note('primary')),
    /** A worker sends its metrics, because it was asked or regularly. */
    store: (worker: FakeWorker, text: string) =>
      relay.store(worker.handle, text, performance.now()),
    die: (worker: FakeWorker): void => {
      live.splice(live.indexOf(worker), 1);
      worker.connected = false;
      worker.enter('exited');
      relay.retire(worker.handle);
    },
    /** How often each of the first workers was asked. */
    asked: () => workers.map((worker) => worker.sent('collect').length),
  };
}

const passed = (ms = 0) => vi.advanceTimersByTimeAsync(ms);

describe('a scrape', () => {
  it('asks every other worker, and is answered once all have answered', async () => {
    const { workers, answers, ask, store, asked } = start(3);
    const [a, b, c] = workers as [FakeWorker, FakeWorker, FakeWorker];
    c.enter('draining');
    ask(a, 7);
    expect(asked()).toEqual([0, 1, 1]);
    store(b, 'B');
    await passed();
    expect(answers).toEqual([]);
    store(c, 'C');
    await passed();
    expect(answers).toEqual([
      {
        by: a,
        snapshot: SNAPSHOT,
        workers: [
          { slot: 0, generation: 0, ageMs: 0, body: body(7) },
          { slot: 1, generation: 0, ageMs: 0, body: 'B' },
          { slot: 2, generation: 0, ageMs: 0, body: 'C' },
        ],
        retired: [],
      },
    ]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('ends at 500 ms without a blocked worker, whose last metrics are used; the next does not wait for it', async () => {
    const { workers, answers, ask, store, asked } = start(2);
    const [a, b] = workers as [FakeWorker, FakeWorker];
    store(b, 'before');
    await passed(4_000);
    ask(a);
    await passed(499);
    expect(answers).toEqual([]);
    await passed(1);
    expect(answers[0]!.workers).toEqual([
      { slot: 0, generation: 0, ageMs: 500, body: body(1) },
      { slot: 1, generation: 0, ageMs: 4_500, body: 'before' },
    ]);
    ask(a);
    await passed();
    expect([answers.length, ...asked()]).toEqual([2, 0, 1]);
    store(b, 'back');
    ask(a);
    await passed();
    expect([answers.length, ...asked()]).toEqual([2, 0, 2]);
  });

  it.each<[what: string, change: (worker: FakeWorker) => void]>([
    [
      'reads no message',
      (worker) => {
        worker.clogged = true;
        worker.handle.send({ type: 'ping', seq: 1 });
      },
    ],
    ['is starting', (worker) => worker.enter('starting')],
    ['has no channel', (worker) => void (worker.connected = false)],
  ])('does not wait for a worker that %s', async (_, change) => {
    const { workers, answers, ask, asked } = start(2);
    change(workers[1]!);
    ask(workers[0]!);
    await passed();
    expect([answers.length, ...asked()]).toEqual([1, 0, 0]);
  });

  it('ends when the last worker that it waits for dies, and counts what that worker had sent', async () => {
    const { workers, answers, ask, die, store } = start(2);
    store(workers[1]!, body(5));
    ask(workers[0]!);
    die(workers[1]!);
    await passed();
    expect(answers).toMatchObject([{ workers: [{ slot: 0 }], retired: [body(5)] }]);
  });

  it('by the primary asks every worker, and does not change when a worker dies later', async () => {
    const { workers, answers, askByPrimary, store, die, asked } = start(2);
    askByPrimary();
    expect(asked()).toEqual([1, 1]);
    workers.forEach((worker, slot) => store(worker, body(slot)));
    await passed();
    die(workers[0]!);
    expect(answers).toMatchObject([{ workers: [{ body: body(0) }, { body: body(1) }] }]);
    expect(answers[0]!.retired).toEqual([]);
  });
});

it('requests at the same time share one collection, and the requesters are not waited for', async () => {
  const { workers, answers, ask, askByPrimary, store, asked } = start(3);
  const [a, b, c] = workers as [FakeWorker, FakeWorker, FakeWorker];
  ask(a, 1);
  ask(a, 2); // It gave up the first time.
  ask(b, 3);
  askByPrimary();
  store(c, 'C');
  await passed();
  expect(asked()).toEqual([0, 1, 1]);
  expect(answers.map(({ by }) => by)).toEqual([a, a, b, 'primary']);
  for (const collected of answers) {
    expect(collected.workers).toMatchObject([{ body: body(2) }, { body: body(3) }, { body: 'C' }]);
  }
});

it('the metrics of ended workers are one body for each slot, however many have ended', async () => {
  const { answers, live, store, die, askByPrimary } = start(0);
  for (let i = 0; i < 300; i += 1) {
    const worker = new FakeWorker({ slot: i % 2 });
    live.push(worker);
    // A worker without ClusterModule has an empty body.
    store(worker, i % 3 === 0 ? '' : body(i % 2 === 0 ? 1 : 0.5));
    die(worker);
  }
  askByPrimary();
  await passed();
  expect(answers[0]!.retired.map(decodeMetrics)).toEqual([[counter(50)], [counter(100)]]);
});
