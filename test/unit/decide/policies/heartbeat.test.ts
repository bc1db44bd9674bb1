import { expect, it, vi } from 'vitest';
import type { ClusterOptions } from '../../../../src/contract/options/resolve.js';
import { ProcessMeter } from '../../../../src/contract/process/process-meter.js';
import type { ProcessStats } from '../../../../src/contract/stats.js';
import { FakeCluster } from '../../support/fake-cluster.js';
import { freezable } from '../../support/frozen-clock.js';

const clock = freezable();
const wait = (ms: number) => void vi.advanceTimersByTime(ms);

/** Rounds are at each full second. */
const start = (workers = 1, options: ClusterOptions = {}) =>
  new FakeCluster(workers, { rebalance: false, ...options });

it('the heartbeat kills a worker that does not answer for the timeout, and not its neighbour that does', () => {
  const cluster = start(2);
  const worker = cluster.newest(0);
  cluster.newest(1).lively = true;
  // The ping of the first round is 10 s old in the eleventh.
  wait(10_999);
  expect(worker.signals).toEqual([]);
  wait(1);
  expect(worker.signals).toEqual(['SIGKILL']);
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
  'the heartbeat says once that it was late by its timeout, and why: utilization %s',
  (eventLoopUtilization, cause) => {
    const measured = { eventLoopUtilization } as ProcessStats;
    vi.spyOn(ProcessMeter.prototype, 'measure').mockReturnValue(measured);
    const cluster = start();
    wait(1_000);
    clock.frozenMs = 16_500;
    wait(5_000);
    expect(cluster.events('warning')).toEqual([
      {
        message: `the primary was late by 16.5 s, more than 10000 ms (hangTimeoutMs): ${cause}; all heartbeat timeouts were reset`,
      },
    ]);
  },
);

it.each([
  ['by less', 9_999, {}, 0],
  ['where it judges nobody', 3_600_000, { hangTimeoutMs: false }, 0],
  ['by as much, in its first round', 10_000, {}, 1],
] as const)('the heartbeat says that it was late %s: %s ms', (_, lateMs, options, times) => {
  const cluster = start(1, options);
  clock.frozenMs = lateMs;
  wait(1_000);
  expect(cluster.events('warning')).toHaveLength(times);
});
