import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { DEFAULTS } from '../../src/options/index.js';
import { NO_FAILURES } from '../../src/primary/policies/restart.policy.js';
import { Slot } from '../../src/primary/slot.js';
import { takeSnapshot } from '../../src/primary/take-snapshot.js';
import type { WorkerExit } from '../../src/snapshot/index.js';
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

const snapshotOf = (...slots: Slot[]) =>
  takeSnapshot(
    {
      balancing: 'shared',
      desired: slots.length,
      generation: 4,
      reloads: { completed: 3, aborted: 1 },
      slots,
      surplus: [],
    },
    performance.now(),
  );

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
      desired: 1,
      ready: 1,
      generation: 4,
      degraded: 0,
      reloads: { completed: 3, aborted: 1 },
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
});

describe('requestsTotal of a slot', () => {
  const totalOf = (slot: Slot) => snapshotOf(slot).workers.map((worker) => worker.requestsTotal);

  it('stays when its worker dies, and goes on with the next', () => {
    const slot = slotWith(new FakeWorker(), 100);
    slot.remove(slot.current!, EXIT);
    expect(totalOf(slot)).toEqual([100]);

    const next = new FakeWorker();
    slot.current = next.handle;
    expect(totalOf(slot)).toEqual([100]);
    next.handle.stats = { ...STATS, requestsTotal: 7 };
    expect(totalOf(slot)).toEqual([107]);
  });

  it('is the same for both processes of a slot that is being replaced', () => {
    const old = new FakeWorker();
    const slot = slotWith(old, 100);
    slot.retire(old.handle);
    slot.current = new FakeWorker().handle;
    slot.current.stats = { ...STATS, requestsTotal: 5 };
    expect(totalOf(slot)).toEqual([105, 105]);
    slot.remove(old.handle, EXIT);
    expect(totalOf(slot)).toEqual([105]);
  });

  it('never falls, whatever becomes of its workers', () => {
    const slot = new Slot(0, RELEASE);
    let last = 0;
    let served = 0;
    const check = () => {
      expect(slot.requestsTotal).toBeGreaterThanOrEqual(last);
      last = slot.requestsTotal;
    };
    for (let life = 0; life < 50; life += 1) {
      const { handle } = new FakeWorker();
      slot.current = handle;
      check();
      for (let requests = 0; requests <= life % 4; requests += 1) {
        handle.stats = { ...STATS, requestsTotal: requests };
        check();
      }
      served += life % 4;
      if (life % 3 === 0) {
        slot.retire(handle);
        check();
      }
      slot.remove(handle, EXIT);
      check();
    }
    expect(slot.requestsTotal).toBe(served);
  });
});

describe('a slot', () => {
  it('gives its place to the next worker while the old one leaves', () => {
    const old = new FakeWorker();
    const slot = slotWith(old);
    slot.retire(old.handle);
    expect([slot.current, slot.ready, slot.workers]).toEqual([undefined, false, [old.handle]]);
    slot.remove(old.handle, EXIT);
    expect(slot.workers).toEqual([]);
  });

  it('keeps its new worker when the old one ends', () => {
    const [old, young] = [new FakeWorker(), new FakeWorker()];
    const slot = slotWith(old);
    slot.retire(old.handle);
    slot.current = young.handle;
    slot.remove(old.handle, EXIT);
    expect([slot.current, slot.ready]).toEqual([young.handle, true]);
  });

  it('remembers how its last worker ended', () => {
    const slot = slotWith(new FakeWorker());
    slot.remove(slot.current!, EXIT);
    expect(snapshotOf(slot).workers[0]!.lastExit).toEqual(EXIT);
  });

  it('is degraded while its workers fail in a loop', () => {
    const slot = new Slot(0, RELEASE);
    const fail = () =>
      slot.recordFailure(
        { cause: 'crash', livedMs: 0 },
        performance.now(),
        DEFAULTS.restart,
        false,
      );
    for (let i = 0; i < 4; i += 1) fail();
    expect(slot.degraded).toBe(false);
    fail();
    expect(slot.degraded).toBe(true);
    expect(snapshotOf(slot).degraded).toBe(1);
    slot.recover();
    expect(snapshotOf(slot).degraded).toBe(0);
    // What is in the window still counts: a cadence just above the stable time is a loop too.
    fail();
    expect(slot.degraded).toBe(true);
  });

  it('is started after its wait, and not once that is called off', () => {
    const [started, calledOff] = [vi.fn(), vi.fn()];
    new Slot(0, RELEASE).scheduleStart(100, started);
    const slot = new Slot(1, RELEASE);
    slot.scheduleStart(100, calledOff);
    slot.cancelStart();
    vi.advanceTimersByTime(99);
    expect(started).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(started).toHaveBeenCalledOnce();
    expect(calledOff).not.toHaveBeenCalled();
  });
});
