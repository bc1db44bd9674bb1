import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { resolveOptions } from '../../src/options/index.js';
import { NO_FAILURES } from '../../src/primary/policies/restart.policy.js';
import { Slot } from '../../src/primary/slot.js';
import type { WorkerState } from '../../src/snapshot/index.js';
import { EXIT, releaseOf } from './fake-cluster.js';
import { FakeWorker, STATS } from './fake-worker.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const RELEASE = releaseOf(0);

/** A slot with `worker` in it. */
function slotWith(worker: FakeWorker, requestsTotal?: number): Slot {
  const slot = new Slot(worker.handle.identity.slot, RELEASE);
  slot.current = worker.handle;
  if (requestsTotal !== undefined) worker.handle.stats = { ...STATS, requestsTotal };
  return slot;
}

describe('requestsTotal of a slot', () => {
  it('stays when its worker dies, and goes on with the next', () => {
    const slot = slotWith(new FakeWorker(), 100);
    slot.remove(slot.current!, EXIT);
    expect(slot.totals.requestsTotal).toBe(100);

    const next = new FakeWorker();
    slot.current = next.handle;
    expect(slot.totals.requestsTotal).toBe(100);
    next.handle.stats = { ...STATS, requestsTotal: 7 };
    expect(slot.totals.requestsTotal).toBe(107);
  });

  it('is the same for both processes of a slot that is being replaced', () => {
    const old = new FakeWorker();
    const slot = slotWith(old, 100);
    slot.retire(old.handle);
    slot.current = new FakeWorker().handle;
    slot.current.stats = { ...STATS, requestsTotal: 5 };
    expect(slot.totals.requestsTotal).toBe(105);
    slot.remove(old.handle, EXIT);
    expect(slot.totals.requestsTotal).toBe(105);
  });

  it('never falls, whatever becomes of its workers', () => {
    const slot = new Slot(0, RELEASE);
    let last = 0;
    let served = 0;
    const check = () => {
      expect(slot.totals.requestsTotal).toBeGreaterThanOrEqual(last);
      last = slot.totals.requestsTotal;
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
    expect(slot.totals.requestsTotal).toBe(served);
  });
});

describe('rebalancedConnectionsTotal of a slot', () => {
  const count = (rebalancedConnectionsTotal: number) => ({ ...STATS, rebalancedConnectionsTotal });

  it('is 0 before a worker has said anything', () => {
    expect(slotWith(new FakeWorker()).totals.rebalancedConnectionsTotal).toBe(0);
  });

  it('stays when its worker dies, and goes on with the next', () => {
    const slot = slotWith(new FakeWorker());
    slot.current!.stats = count(5);
    slot.remove(slot.current!, EXIT);
    expect(slot.totals.rebalancedConnectionsTotal).toBe(5);
    slot.current = new FakeWorker().handle;
    slot.current.stats = count(2);
    expect(slot.totals.rebalancedConnectionsTotal).toBe(7);
    slot.remove(slot.current, EXIT);
    expect(slot.totals.rebalancedConnectionsTotal).toBe(7);
  });

  it('is that of all its processes, and apart from the requests', () => {
    const [old, candidate] = [new FakeWorker(), new FakeWorker()];
    const slot = slotWith(old);
    slot.candidate = candidate.handle;
    old.handle.stats = count(5);
    candidate.handle.stats = count(1);
    expect([slot.totals.rebalancedConnectionsTotal, slot.totals.requestsTotal]).toEqual([6, 20]);
    slot.remove(old.handle, EXIT);
    expect([slot.totals.rebalancedConnectionsTotal, slot.totals.requestsTotal]).toEqual([6, 20]);
  });

  it('takes nothing from a worker that died before it said anything', () => {
    const slot = slotWith(new FakeWorker());
    slot.remove(slot.current!, EXIT);
    expect([slot.totals.rebalancedConnectionsTotal, slot.totals.requestsTotal]).toEqual([0, 0]);
  });
});

describe('the CPU time of a slot', () => {
  const used = (cpuSecondsTotal: number, gcSecondsTotal: number) => ({
    ...STATS,
    cpuSecondsTotal,
    gcSecondsTotal,
  });

  it('is that of all its workers, and likewise the time of its garbage collections', () => {
    const slot = slotWith(new FakeWorker());
    slot.current!.stats = used(10, 1);
    slot.remove(slot.current!, EXIT);
    slot.current = new FakeWorker().handle;
    expect(slot.totals).toMatchObject({ cpuSecondsTotal: 10, gcSecondsTotal: 1 });
    slot.current.stats = used(2.5, 0.25);
    expect(slot.totals).toMatchObject({ cpuSecondsTotal: 12.5, gcSecondsTotal: 1.25 });
  });

  it('does not fall by the last bit of a double when a worker dies before another', () => {
    // 0.1 + 0.2 + 0.3 is 0.6000000000000001 or 0.6, as they are grouped.
    const workers = [0.1, 0.2, 0.3].map((seconds) => {
      const { handle } = new FakeWorker();
      handle.stats = used(seconds, seconds);
      return handle;
    });
    const sums = workers.flatMap((first) => {
      const slot = new Slot(0, RELEASE);
      for (const worker of workers) slot.retiring.add(worker);
      const totals = [slot.totals];
      for (const worker of [first, ...workers.filter((each) => each !== first)]) {
        slot.remove(worker, EXIT);
        totals.push(slot.totals);
      }
      return totals.flatMap(({ cpuSecondsTotal, gcSecondsTotal }) => [
        cpuSecondsTotal,
        gcSecondsTotal,
      ]);
    });
    expect(new Set(sums)).toEqual(new Set([0.6]));
  });

  it('is told to the microsecond', () => {
    const slot = slotWith(new FakeWorker());
    slot.current!.stats = used(1.234_567, 0.000_001);
    expect(slot.totals).toMatchObject({ cpuSecondsTotal: 1.234_567, gcSecondsTotal: 0.000_001 });
  });

  it('is a copy: what was read does not change', () => {
    const slot = slotWith(new FakeWorker());
    slot.current!.stats = used(1, 1);
    const before = slot.totals;
    slot.remove(slot.current!, EXIT);
    slot.current = new FakeWorker().handle;
    slot.current.stats = used(5, 5);
    expect([before.cpuSecondsTotal, slot.totals.cpuSecondsTotal]).toEqual([1, 6]);
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
    expect(slot.lastExit).toEqual(EXIT);
  });

  it('is degraded while its workers fail in a loop', () => {
    const slot = new Slot(0, RELEASE);
    const fail = () =>
      slot.recordFailure(
        { cause: 'crash', livedMs: 0 },
        performance.now(),
        resolveOptions({}, {}).restart,
        false,
      );
    for (let i = 0; i < 4; i += 1) fail();
    expect(slot.degraded).toBe(false);
    fail();
    expect(slot.degraded).toBe(true);
    slot.recover();
    expect(slot.degraded).toBe(false);
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

  it('is started once where it is scheduled twice: by the later', () => {
    const [first, second] = [vi.fn(), vi.fn()];
    const slot = new Slot(0, RELEASE);
    slot.scheduleStart(100, first);
    slot.scheduleStart(200, second);
    vi.advanceTimersByTime(1_000);
    expect(first).not.toHaveBeenCalled();
    expect(second).toHaveBeenCalledOnce();
  });

  it('is not in a crash loop any more once a worker has lived well; its row begins anew', () => {
    const slot = new Slot(0, RELEASE);
    slot.failures = { ...NO_FAILURES, recent: [1, 2], inARow: 2, shortLives: 4, degraded: true };
    slot.recover();
    expect(slot.failures).toMatchObject({ recent: [1, 2], shortLives: 0, degraded: false });
  });

  it('counts restarts by their cause', () => {
    const slot = new Slot(0, RELEASE);
    for (const cause of ['crash', 'memory', 'crash'] as const) slot.countRestart(cause);
    expect(Object.fromEntries(slot.restarts)).toEqual({ crash: 2, memory: 1 });
  });
});

describe('a slot with a candidate', () => {
  function withCandidate(state: WorkerState = 'starting') {
    const [old, candidate] = [new FakeWorker({ pid: 1 }), new FakeWorker({ pid: 2, state })];
    const slot = slotWith(old);
    slot.candidate = candidate.handle;
    return { slot, old: old.handle, candidate: candidate.handle };
  }

  it('has two workers, the newer one last', () => {
    const { slot, old, candidate } = withCandidate();
    expect(slot.workers).toEqual([old, candidate]);
  });

  it.each([
    ['ready', 'starting', true, true],
    ['ready', 'ready', true, false],
    ['draining', 'ready', true, false],
    ['draining', 'starting', false, true],
    ['starting', 'draining', false, true],
    ['draining', 'draining', false, false],
  ] as const)(
    'and its worker %s, the candidate %s: ready %s, starting %s',
    (current, state, ready, starting) => {
      const { slot } = withCandidate(state);
      slot.current = new FakeWorker({ state: current }).handle;
      expect([slot.ready, slot.starting]).toEqual([ready, starting]);
    },
  );

  it('gives it the place and the release, and hands out the worker before it', () => {
    const { slot, old, candidate } = withCandidate('ready');
    const release = { ...RELEASE, generation: 5 };
    expect(slot.promote(candidate, release)).toBe(old);
    expect(slot).toMatchObject({ current: candidate, candidate: undefined, release });
  });

  it('keeps its worker when the candidate ends', () => {
    const { slot, old, candidate } = withCandidate();
    slot.remove(candidate, EXIT);
    expect([slot.current, slot.candidate, slot.workers]).toEqual([old, undefined, [old]]);
  });

  it('keeps its worker when the candidate is sent away', () => {
    const { slot, old, candidate } = withCandidate('ready');
    slot.retire(candidate);
    expect([slot.current, slot.candidate]).toEqual([old, undefined]);
    expect(slot.workers).toEqual([candidate, old]);
  });

  it('keeps the candidate when its worker ends', () => {
    const { slot, old, candidate } = withCandidate();
    slot.remove(old, EXIT);
    expect([slot.current, slot.candidate]).toEqual([undefined, candidate]);
  });

  it('counts the requests of both', () => {
    const { slot, old, candidate } = withCandidate('ready');
    old.stats = { ...STATS, requestsTotal: 30 };
    candidate.stats = { ...STATS, requestsTotal: 4 };
    expect(slot.totals.requestsTotal).toBe(34);
  });
});

describe('requests that drains of a slot cut off', () => {
  it('add up over its workers', () => {
    const slot = new Slot(0, RELEASE);
    for (const abortedRequests of [2, 0, 5]) {
      const { handle } = new FakeWorker();
      slot.current = handle;
      handle.drain = {
        durationMs: 1,
        unacceptedConnections: 0,
        destroyedConnections: abortedRequests,
        destroyedWebSockets: 0,
        abortedRequests,
        hookError: null,
      };
      slot.remove(handle, EXIT);
    }
    const { handle } = new FakeWorker();
    slot.remove(handle, EXIT);
    expect(slot.abortedRequests).toBe(7);
  });
});
