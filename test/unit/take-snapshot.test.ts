import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { NO_FAILURES } from '../../src/primary/policies/restart.policy.js';
import { Slot } from '../../src/primary/slot.js';
import { takeSnapshot } from '../../src/primary/take-snapshot.js';
import type { WorkerExit } from '../../src/snapshot/index.js';
import { PRIMARY } from './fake-cluster.js';
import { FakeWorker, STATS } from './fake-worker.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const RELEASE = { generation: 4, script: '/app/main.js', cwd: '/app' };

const EXIT: WorkerExit = {
  cause: 'hang',
  code: null,
  signal: 'SIGKILL',
  at: '2026-01-01T00:00:00.000Z',
};

const CLUSTER = {
  balancing: 'shared',
  ports: [],
  generation: 4,
  reloads: { completed: 3, aborted: 1 },
  surplus: [],
  dismissed: [],
  primary: PRIMARY,
  minReady: 'all',
} as const;

const snapshotOf = (...slots: Slot[]) =>
  takeSnapshot({ ...CLUSTER, desired: slots.length, slots }, performance.now());

/** A slot with `worker` in it. */
function slotWith(worker: FakeWorker, requestsTotal?: number): Slot {
  const slot = new Slot(worker.handle.identity.slot, RELEASE);
  slot.current = worker.handle;
  if (requestsTotal !== undefined) worker.handle.stats = { ...STATS, requestsTotal };
  return slot;
}

describe('a snapshot', () => {
  it('tells all there is to know of a worker', () => {
    const worker = new FakeWorker({ slot: 0, pid: 42, generation: 2 });
    const slot = slotWith(worker);
    vi.advanceTimersByTime(12_345);
    worker.handle.stats = STATS;
    worker.handle.seenAt = performance.now() - 400;
    for (const cause of ['crash', 'crash', 'hang'] as const) slot.countRestart(cause);
    slot.lastExit = EXIT;

    expect(snapshotOf(slot)).toEqual({
      balancing: 'shared',
      ports: [],
      desired: 1,
      ready: 1,
      minReady: 'all',
      generation: 4,
      degraded: 0,
      reloads: { completed: 3, aborted: 1 },
      dismissed: [],
      primary: PRIMARY,
      workers: [
        {
          slot: 0,
          pid: 42,
          generation: 2,
          state: 'ready',
          uptimeSeconds: 12.345,
          restarts: 3,
          restartsByCause: { crash: 2, hang: 1 },
          lastExit: EXIT,
          degraded: false,
          abortedRequestsTotal: 0,
          droppedMessagesTotal: 0,
          refusedMetricsTotal: 0,
          heartbeatAgeMs: 400,
          responsive: true,
          ...STATS,
        },
      ],
    });
  });

  it('has null for what a worker has not told yet', () => {
    const slot = slotWith(new FakeWorker({ state: 'starting' }));
    expect(snapshotOf(slot).workers[0]).toMatchObject({
      state: 'starting',
      heartbeatAgeMs: null,
      residentMemoryBytes: null,
      heapUsedBytes: null,
      eventLoopUtilization: null,
      eventLoopDelayP99Ms: null,
      openConnections: null,
      requestsInFlight: null,
    });
  });

  it('lists a slot that waits for a restart, without a process', () => {
    const snapshot = snapshotOf(new Slot(0, RELEASE));
    expect(snapshot.ready).toBe(0);
    expect(snapshot.workers).toMatchObject([
      {
        slot: 0,
        pid: null,
        generation: 4,
        state: 'exited',
        uptimeSeconds: 0,
        heartbeatAgeMs: null,
        responsive: false,
        requestsTotal: 0,
        cpuSecondsTotal: 0,
        gcSecondsTotal: 0,
      },
    ]);
  });

  it('lists both processes of a slot that is being replaced, the newer one last', () => {
    const [old, young] = [new FakeWorker({ pid: 1 }), new FakeWorker({ pid: 2 })];
    const slot = slotWith(old);
    slot.retire(old.handle);
    old.handle.enter('draining');
    slot.current = young.handle;
    const { workers, ready } = snapshotOf(slot);
    expect(workers.map(({ pid, state }) => [pid, state])).toEqual([
      [1, 'draining'],
      [2, 'ready'],
    ]);
    expect(ready).toBe(1);
  });

  it('counts what is ready and what is degraded', () => {
    const slots = (['ready', 'starting', 'draining', 'ready'] as const).map((state, slot) =>
      slotWith(new FakeWorker({ slot, state })),
    );
    slots[1]!.failures = { ...NO_FAILURES, degraded: true };
    expect(snapshotOf(...slots, new Slot(4, RELEASE))).toMatchObject({
      desired: 5,
      ready: 2,
      degraded: 1,
    });
    expect(snapshotOf(...slots).workers.map(({ slot }) => slot)).toEqual([0, 1, 2, 3]);
  });

  it('calls a worker unresponsive that owes an answer for 2 s', () => {
    const worker = new FakeWorker();
    const slot = slotWith(worker);
    worker.handle.ping = { seq: 1, sentAt: performance.now() };
    vi.advanceTimersByTime(1_999);
    expect(snapshotOf(slot).workers[0]!.responsive).toBe(true);
    vi.advanceTimersByTime(1);
    expect(snapshotOf(slot).workers[0]!.responsive).toBe(false);
    worker.handle.ping = undefined;
    expect(snapshotOf(slot).workers[0]!.responsive).toBe(true);
  });

  it('is a copy: it does not change with the slot', () => {
    const slot = slotWith(new FakeWorker(), 5);
    const snapshot = snapshotOf(slot);
    slot.countRestart('crash');
    slot.remove(slot.current!, EXIT);
    expect(snapshot.workers[0]).toMatchObject({ restarts: 0, restartsByCause: {}, pid: 1_000 });
  });

  it('crosses the channel unchanged', () => {
    const slot = slotWith(new FakeWorker(), 5);
    const snapshot = snapshotOf(slot, new Slot(1, RELEASE));
    expect(JSON.parse(JSON.stringify(snapshot))).toEqual(snapshot);
  });

  it('says which slots are in a crash loop (C6)', () => {
    const slots = [0, 1].map((index) => new Slot(index, RELEASE));
    slots[1]!.failures = { ...NO_FAILURES, degraded: true };
    expect(snapshotOf(...slots).workers.map(({ degraded }) => degraded)).toEqual([false, true]);
  });

  it('tells what drains of a slot had to cut off (R10)', () => {
    const slot = slotWith(new FakeWorker());
    slot.abortedRequests = 4;
    expect(snapshotOf(slot).workers[0]!.abortedRequestsTotal).toBe(4);
  });

  it("lists a candidate beside the worker that it may succeed, which stays the slot's", () => {
    const [old, candidate] = [
      new FakeWorker({ pid: 1 }),
      new FakeWorker({ pid: 2, generation: 1 }),
    ];
    const slot = slotWith(old);
    slot.candidate = candidate.handle;
    const { ready, workers } = snapshotOf(slot);
    expect(ready).toBe(1);
    expect(workers.map(({ pid, generation }) => [pid, generation])).toEqual([
      [1, 0],
      [2, 1],
    ]);
  });

  it('lists slots that are not wanted any more last, and counts nothing of them', () => {
    const slot = slotWith(new FakeWorker({ slot: 0 }));
    const surplus = slotWith(new FakeWorker({ slot: 1 }));
    surplus.failures = { ...NO_FAILURES, degraded: true };
    const snapshot = takeSnapshot(
      { ...CLUSTER, desired: 1, slots: [slot], surplus: [surplus] },
      performance.now(),
    );
    expect(snapshot).toMatchObject({
      desired: 1,
      ready: 1,
      degraded: 0,
      workers: [{ slot: 0 }, { slot: 1 }],
    });
  });

  it('tells how connections reach the workers, and on which ports', () => {
    const ports = [3_000, 3_001];
    const snapshot = takeSnapshot(
      { ...CLUSTER, balancing: 'ports', ports, desired: 0, slots: [] },
      0,
    );
    expect(snapshot).toMatchObject({ balancing: 'ports', ports });
  });

  it('tells how many clients of a slot were asked to connect again, over all its workers', () => {
    const slot = slotWith(new FakeWorker());
    slot.current!.stats = { ...STATS, rebalancedConnectionsTotal: 4 };
    slot.remove(slot.current!, EXIT);
    slot.current = new FakeWorker().handle;
    slot.current.stats = { ...STATS, rebalancedConnectionsTotal: 3 };
    expect(snapshotOf(slot).workers[0]!.rebalancedConnectionsTotal).toBe(7);
  });

  it('tells the CPU time of a slot, over all its workers', () => {
    const slot = slotWith(new FakeWorker(), 1);
    slot.remove(slot.current!, EXIT);
    slot.current = new FakeWorker().handle;
    slot.current.stats = STATS;
    expect(snapshotOf(slot).workers[0]).toMatchObject({
      cpuSecondsTotal: 2 * STATS.cpuSecondsTotal,
      gcSecondsTotal: 2 * STATS.gcSecondsTotal,
    });
  });

  it('keeps what was counted in slots that have no worker any more, and nothing else of them', () => {
    const slot = slotWith(new FakeWorker({ slot: 3 }), 50);
    slot.current!.stats = { ...slot.current!.stats!, rebalancedConnectionsTotal: 6 };
    slot.countRestart('oom');
    slot.remove(slot.current!, EXIT);
    slot.abortedRequests = 2;
    slot.droppedMessages = 3;
    slot.refusedMetrics = 4;
    const snapshot = takeSnapshot({ ...CLUSTER, desired: 0, slots: [], dismissed: [slot] }, 0);
    expect(snapshot.dismissed).toEqual([
      {
        slot: 3,
        restartsByCause: { oom: 1 },
        abortedRequestsTotal: 2,
        droppedMessagesTotal: 3,
        refusedMetricsTotal: 4,
        requestsTotal: 50,
        rebalancedConnectionsTotal: 6,
        logLinesDroppedTotal: STATS.logLinesDroppedTotal,
        droppedConnectionsTotal: 0,
        cpuSecondsTotal: STATS.cpuSecondsTotal,
        gcSecondsTotal: STATS.gcSecondsTotal,
      },
    ]);
    expect(snapshot.workers).toEqual([]);
  });

  it('has reloads that do not change with the next one', () => {
    const reloads = { completed: 1, aborted: 0 };
    const snapshot = takeSnapshot({ ...CLUSTER, reloads, desired: 0, slots: [] }, 0);
    reloads.completed = 2;
    expect(snapshot.reloads).toEqual({ completed: 1, aborted: 0 });
  });
});
