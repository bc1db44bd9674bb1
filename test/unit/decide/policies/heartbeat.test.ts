import { describe, expect, it, vi } from 'vitest';
import type { ClusterOptions } from '../../../../src/contract/options/resolve.js';
import { ProcessMeter } from '../../../../src/contract/process/process-meter.js';
import type { ProcessStats } from '../../../../src/contract/stats.js';
import { FakeCluster } from '../../support/fake-cluster.js';
import { type FakeWorker, STATS } from '../../support/fake-worker.js';
import { freezable } from '../../support/frozen-clock.js';

describe('the heartbeat', () => {
  const clock = freezable();

  /** Rounds are at each full second. What else ends workers takes longer than these tests. */
  function start(workers = 1, options: ClusterOptions = {}, state?: 'starting') {
    const patient: ClusterOptions = {
      rebalance: false,
      readyTimeoutMs: 900_000,
      shutdown: { drainTimeoutMs: 900_000 },
    };
    const cluster = new FakeCluster(workers, { ...patient, ...options }, state);
    return { cluster, worker: cluster.newest(0) };
  }
  const wait = (ms: number) => void vi.advanceTimersByTime(ms);
  /** Waits: it is killed at the end of that time, not before. */
  function expectKill(worker: FakeWorker, afterMs: number): void {
    wait(afterMs - 1);
    expect(worker.signals).toEqual([]);
    wait(1);
    expect(worker.signals).toEqual(['SIGKILL']);
  }

  const report = (forMs: number) => ({
    forMs,
    requests: [{ method: 'GET', path: '/spin', forMs }],
    frames: ['spin (/app/main.js:3:7)'],
  });
  const tellBlock = (worker: FakeWorker, forMs: number) =>
    worker.say({ type: 'blocked', ...report(forMs) });

  it('kills a worker that does not answer for the timeout, and not its neighbour that does', () => {
    const { cluster, worker } = start(2);
    cluster.newest(1).lively = true;
    // The ping of the first round is 10 s old in the eleventh.
    expectKill(worker, 11_000);
    worker.exit({ signal: 'SIGKILL' });
    expect(cluster.newest(1).signals).toEqual([]);
    expect(cluster.events('worker-died')).toMatchObject([
      { cause: 'hang', detail: 'it did not answer for 10000 ms (hangTimeoutMs) and was killed' },
    ]);
  });

  it.each([
    [0.02, 'the machine was suspended or overloaded, or the process was stopped'],
    [0.98, 'its own event loop was blocked, or the process was stopped'],
  ])(
    'says once that it was late by its timeout, and why: utilization %s',
    (eventLoopUtilization, cause) => {
      const measured = { eventLoopUtilization } as ProcessStats;
      vi.spyOn(ProcessMeter.prototype, 'measure').mockReturnValue(measured);
      const { cluster } = start();
      wait(1_000);
      clock.frozenMs = 16_500;
      wait(5_000);
      expect(cluster.events('warning')).toEqual([
        {
          message: `the primary was late by 16.5 s, more than 10000 ms (hangTimeoutMs): ${cause}; no worker is judged by that time`,
        },
      ]);
    },
  );

  it.each([
    ['by less', 9_999, {}, 0],
    ['where it judges nobody', 3_600_000, { hangTimeoutMs: false }, 0],
    ['by as much, in its first round', 10_000, {}, 1],
  ] as const)('says that it was late %s: %s ms', (_, lateMs, options, times) => {
    const { cluster } = start(1, options);
    clock.frozenMs = lateMs;
    wait(1_000);
    expect(cluster.events('warning')).toHaveLength(times);
  });

  it('keeps what an answer says, of that worker', () => {
    const { cluster, worker } = start(2);
    wait(1_000);
    worker.answerPing(STATS);
    wait(234);
    expect([...cluster.slot(0), ...cluster.slot(1)]).toMatchObject([
      { ...STATS, heartbeatAgeMs: 234 },
      { requestsInFlight: null, requestsTotal: 0 },
    ]);
  });

  describe('with the report of a watchdog', () => {
    /** Pinged at 1 000 ms; blocked since 400 ms, as is told at 5 400 ms. */
    function blocked() {
      const started = start();
      wait(5_400);
      tellBlock(started.worker, 5_000);
      return started;
    }

    it('kills the worker when its time is up by that: between two rounds, and before the ping would tell', () => {
      const { cluster, worker } = blocked();
      expectKill(worker, 5_000);
      worker.exit({ signal: 'SIGKILL' });
      expect(cluster.events('worker-died')).toMatchObject([
        { cause: 'hang', blocked: report(10_000) },
      ]);
    });
  });
});
