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
  const pings = (worker: FakeWorker) => worker.sent('ping').map(({ seq }) => seq);
  const wait = (ms: number) => void vi.advanceTimersByTime(ms);
  /** Waits: it is killed at the end of that time, not before. */
  function expectKill(worker: FakeWorker, afterMs: number): void {
    wait(afterMs - 1);
    expect(worker.signals).toEqual([]);
    wait(1);
    expect(worker.signals).toEqual(['SIGKILL']);
  }
  const attachDebugger = (worker: FakeWorker) =>
    worker.say({ type: 'pong', seq: pings(worker).at(-1)!, stats: {}, debugged: true });

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

  it.each<[who: string, reported: boolean]>(
    ['who is starting', 'who is draining', 'under a debugger', 'where it is off'].flatMap((who) => [
      [who, false],
      [who, true],
    ]),
  )('kills nobody %s (with the report of a watchdog: %s)', (who, reported) => {
    const { worker } = start(
      1,
      who === 'where it is off' ? { hangTimeoutMs: false } : {},
      'starting',
    );
    if (who !== 'who is starting') worker.becomeReady();
    if (who === 'who is draining') worker.say({ type: 'leaving' });
    wait(1_000);
    if (who === 'under a debugger') attachDebugger(worker);
    wait(1_000);
    if (reported) tellBlock(worker, 100_000);
    wait(600_000);
    expect(worker.signals).toEqual([]);
    const asked = { 'who is starting': 0, 'under a debugger': 2 }[who] ?? 1;
    expect(pings(worker)).toHaveLength(asked);
  });

  it('judges a worker again after its debugger has left', () => {
    const { worker } = start();
    wait(1_000);
    attachDebugger(worker);
    wait(1_000);
    worker.say({ type: 'pong', seq: pings(worker).at(-1)!, stats: {}, debugged: false });
    expectKill(worker, 11_000);
  });

  it('postpones judgement after a late round: the answers may lie unread', () => {
    const { worker } = start();
    wait(1_500);
    clock.frozenMs = 3_600_000;
    wait(500);
    expectKill(worker, 10_000);
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
          message: `the primary was late by 16.5 s, more than 10000 ms (hangTimeoutMs): ${cause}; all heartbeat timeouts start again`,
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

  it('takes an answer that says less: what it leaves out stays as it was', () => {
    const { cluster, worker } = start();
    wait(1_000);
    worker.answerPing(STATS);
    wait(1_000);
    attachDebugger(worker);
    wait(1_000);
    worker.answerPing({ requestsTotal: 11 });
    wait(60_000);
    expect(cluster.slot(0)).toMatchObject([{ ...STATS, requestsTotal: 11 }]);
    expect(pings(worker)).toHaveLength(4);
    expect(worker.signals).toEqual([]);
  });

  describe('with the report of a watchdog', () => {
    /** Pinged at 1 000 ms; blocked since 400 ms, as is told at 5 400 ms. */
    function blocked() {
      const started = start();
      wait(5_400);
      tellBlock(started.worker, 5_000);
      return started;
    }

    it('begins the time of a block again after a late round of the primary, also without an open ping', () => {
      const { worker } = blocked();
      worker.answerPing();
      clock.frozenMs = 20_000;
      wait(600); // a round
      expectKill(worker, 10_000);
    });

    it('kills the worker when its time is up by that: between two rounds, and before the ping would tell', () => {
      const { cluster, worker } = blocked();
      expectKill(worker, 5_000);
      worker.exit({ signal: 'SIGKILL' });
      expect(cluster.events('worker-died')).toMatchObject([
        { cause: 'hang', blocked: report(10_000) },
      ]);
    });

    it('judges nobody between two rounds where the next one is late: answers may lie unread', () => {
      const { worker } = blocked();
      wait(4_601); // just after a round
      clock.frozenMs = 2_000;
      wait(998); // just before the next
      expect(worker.signals).toEqual([]);
      wait(1);
      expectKill(worker, 10_000);
    });
  });
});
