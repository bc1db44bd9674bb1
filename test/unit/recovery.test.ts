import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { WorkersFailedError } from '../../src/errors/index.js';
import type { ClusterOptions } from '../../src/options/index.js';
import { Recovery } from '../../src/primary/recovery.js';
import type { Slot } from '../../src/primary/slot.js';
import type { FailureCause } from '../../src/snapshot/index.js';
import { FakeCluster } from './fake-cluster.js';
import { FakeWorker } from './fake-worker.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const NO_JITTER: ClusterOptions = { restart: { jitterRatio: 0 } };

function start(workers = 2, options = NO_JITTER) {
  const cluster = new FakeCluster(workers, options);
  const due: Slot[] = [];
  const recovery = new Recovery(cluster.options, cluster.table, cluster.emit, (slot) =>
    due.push(slot),
  );
  recovery.everReady = true;
  return {
    cluster,
    recovery,
    due,
    /** The worker of the slot fails after `livedMs`; another takes its place at once. */
    fail: (index: number, cause: FailureCause = 'crash', livedMs = 0) => {
      const worker = cluster.current(index);
      vi.advanceTimersByTime(livedMs);
      cluster.exit(worker);
      const error = recovery.note(worker.handle, cause, 'exited with code 1');
      const slot = cluster.table.slotOf(worker.handle);
      slot.current = cluster.fork(slot, slot.release, 'ready').handle;
      return error;
    },
  };
}

describe('a slot whose worker failed', () => {
  it('is started again after the delay that is said, not before', () => {
    const { cluster, recovery, due, fail } = start();
    fail(1);
    recovery.restart(cluster.slot(1));
    expect(cluster.events('worker-restarting')).toEqual([
      { slot: 1, delayMs: 100, failures: 1, degraded: false },
    ]);
    vi.advanceTimersByTime(99);
    expect(due).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(due).toEqual([cluster.slot(1)]);
  });

  it('is degraded with its fifth failure, and is said to be (C6)', () => {
    const { cluster, recovery, fail } = start();
    for (let i = 0; i < 4; i += 1) fail(0);
    expect(cluster.slot(0).degraded).toBe(false);
    expect(fail(0)).toBeUndefined();
    recovery.restart(cluster.slot(0));
    expect(cluster.events('worker-restarting')).toEqual([
      { slot: 0, delayMs: 15_000, failures: 5, degraded: true },
    ]);
    expect(cluster.table.snapshot().degraded).toBe(1);
  });

  it('knows how long its worker had lived: from ready to its end', () => {
    const { cluster, recovery, due, fail } = start();
    fail(0, 'crash', 30_000);
    recovery.restart(cluster.slot(0));
    vi.advanceTimersByTime(0);
    expect(due).toEqual([cluster.slot(0)]);
  });

  it('is started at once with a single failure, and not together with others after a stable life', () => {
    const { cluster, recovery, fail } = start(6);
    vi.advanceTimersByTime(60_000);
    vi.spyOn(Math, 'random').mockReturnValue(0.5);
    for (let i = 0; i < 6; i += 1) {
      fail(i);
      recovery.restart(cluster.slot(i));
    }
    vi.advanceTimersByTime(1_000);
    fail(0, 'crash', 30_000);
    recovery.restart(cluster.slot(0));
    vi.restoreAllMocks();
    const delays = cluster.events('worker-restarting').map(({ delayMs }) => delayMs);
    expect(delays).toEqual([0, 50, 100, 150, 200, 250, 0]);
  });

  it('had no life where it never was ready, however long that took', () => {
    const { cluster, recovery } = start();
    const worker = cluster.fork(cluster.slot(0), cluster.slot(0).release);
    vi.advanceTimersByTime(600_000);
    recovery.note(worker.handle, 'boot', 'boot timed out');
    expect(cluster.slot(0).failures).toMatchObject({ inARow: 1, shortLives: 1 });
  });
});

describe('the failures of all slots together', () => {
  it('are a crash loop of whichever slot fails next, where they are twice as many as workers (C7)', () => {
    const { cluster, fail } = start(4);
    for (let i = 0; i < 7; i += 1) fail(i % 4);
    expect(cluster.table.snapshot().degraded).toBe(0);
    fail(3);
    expect(cluster.slot(3).degraded).toBe(true);
    expect(cluster.slot(0).degraded).toBe(false);
  });

  it('are no crash loop of a slot that fails once, however often another one has', () => {
    const { cluster, fail } = start(2);
    for (let i = 0; i < 10; i += 1) fail(0);
    expect(fail(1)).toBeUndefined();
    expect(cluster.table.slots.map(({ degraded }) => degraded)).toEqual([true, false]);
    expect(fail(1)).toBeUndefined();
    expect(cluster.slot(1).degraded).toBe(true);
  });

  it('are counted within the window only', () => {
    const { cluster, fail } = start(4);
    for (let i = 0; i < 7; i += 1) fail(i % 4);
    vi.advanceTimersByTime(60_000);
    fail(3);
    expect(cluster.table.snapshot().degraded).toBe(0);
  });

  it('do not hold those who were killed from outside', () => {
    const { cluster, fail } = start(4);
    for (let i = 0; i < 40; i += 1) fail(i % 4, 'killed');
    fail(0, 'crash');
    expect(cluster.table.snapshot().degraded).toBe(0);
  });

  it('do not hold those of workers that could not even be started', () => {
    const { cluster, recovery, fail } = start(4);
    for (let i = 0; i < 40; i += 1) {
      const { handle } = new FakeWorker({ slot: i % 4, pid: 0, state: 'starting' });
      recovery.note(handle, 'boot', 'spawn EMFILE');
    }
    expect(cluster.slot(0).failures).toMatchObject({ recent: [], inARow: 10 });
    fail(0, 'crash');
    expect(cluster.table.snapshot().degraded).toBe(0);
  });

  it('may be more where there are more workers by then', () => {
    const { cluster, fail } = start(4);
    for (let i = 0; i < 7; i += 1) fail(i % 4);
    for (const slot of cluster.table.resize(8)) {
      slot.current = cluster.fork(slot, slot.release, 'ready').handle;
    }
    fail(3);
    expect(cluster.table.snapshot().degraded).toBe(0);
  });
});

describe('the cluster', () => {
  it('gives up where no worker has ever become ready after two tries a slot (B3)', () => {
    const { recovery, fail } = start(2);
    recovery.everReady = false;
    expect([fail(0, 'boot'), fail(1, 'boot'), fail(0, 'boot')]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    const error = fail(1, 'boot');
    expect(error).toBeInstanceOf(WorkersFailedError);
    expect(error).toMatchObject({
      code: 'CLUSTER_WORKERS_FAILED',
      exitCode: 70,
      message: 'no worker became ready in 4 attempts',
    });
  });

  it('waits for the first boot of a slot, however often the others failed, and no longer', () => {
    const { cluster, recovery } = start(2);
    recovery.everReady = false;
    const fail = (index: number) => {
      const slot = cluster.slot(index);
      const worker = cluster.fork(slot, slot.release);
      return recovery.note(worker.handle, 'boot', 'boot timed out');
    };
    for (let i = 0; i < 10; i += 1) expect(fail(0)).toBeUndefined();
    expect(fail(1)).toMatchObject({ message: 'no worker became ready in 11 attempts' });
  });

  it('gives up where all slots are in a crash loop and none serves (C7)', () => {
    const { cluster, recovery } = start(1);
    let error: unknown;
    for (let i = 0; i < 5; i += 1) {
      expect(error).toBeUndefined();
      const worker = cluster.fork(cluster.slot(0), cluster.slot(0).release, 'ready');
      cluster.slot(0).current = worker.handle;
      cluster.exit(worker);
      error = recovery.note(worker.handle, 'crash', 'exited with code 1');
    }
    expect(error).toMatchObject({ message: 'every worker is in a crash loop' });
  });

  it('gives the last error that a worker reported as the cause', () => {
    const { cluster, recovery } = start(1);
    recovery.everReady = false;
    const worker = cluster.current(0).handle;
    worker.error = { name: 'TypeError', message: 'x is undefined' };
    recovery.note(worker, 'boot', 'exited with code 1');
    expect(recovery.note(worker, 'boot', 'exited with code 1')?.cause).toBe(worker.error);
  });

  it('points to the output of a worker that reported none', () => {
    const { cluster, recovery } = start(1);
    recovery.everReady = false;
    const worker = cluster.current(0).handle;
    recovery.note(worker, 'boot', 'exited with code 1');
    expect(recovery.note(worker, 'boot', 'exited with code 1')?.cause).toMatchObject({
      message: 'exited with code 1; see its output above',
    });
  });

  it('goes on where a candidate is on its way: it may bring the code that does not fail', () => {
    const { cluster, recovery } = start(1);
    const slot = cluster.slot(0);
    const fail = () => {
      const worker = cluster.fork(slot, slot.release, 'ready');
      slot.current = worker.handle;
      cluster.exit(worker);
      return recovery.note(worker.handle, 'crash', 'exited with code 1');
    };
    for (let i = 0; i < 4; i += 1) fail();
    slot.candidate = cluster.fork(slot, slot.release).handle;
    expect(fail()).toBeUndefined();
    expect(slot.degraded).toBe(true);
    slot.candidate = undefined;
    expect(fail()).toBeInstanceOf(WorkersFailedError);
  });

  it('goes on without the slots that are not wanted any more', () => {
    const { cluster, fail } = start(2);
    cluster.table.resize(1);
    for (let i = 0; i < 4; i += 1) expect(fail(0)).toBeUndefined();
    expect(cluster.slot(0).degraded).toBe(false);
  });
});

describe('the time after which the past of a slot is forgotten', () => {
  it('is twice a stable life', () => {
    expect(start().recovery.recoveryMs).toBe(60_000);
    expect(start(1, { restart: { stableAfterMs: 700 } }).recovery.recoveryMs).toBe(1_400);
  });
});
