import { describe, expect, it } from 'vitest';
import { type MinReady, resolveModuleOptions } from '../../../../src/contract/options/module.js';
import type { ClusterSnapshot, WorkerSnapshot } from '../../../../src/contract/snapshot/types.js';
import type { WorkerStats } from '../../../../src/contract/stats.js';
import {
  ClusterHealthIndicator,
  EventLoopHealthIndicator,
  OffloadHealthIndicator,
} from '../../../../src/observe/health/indicators.js';
import type { Offload } from '../../../../src/offload/offload.service.js';
import { SNAPSHOT } from '../../support/fake-relay.js';

/** Differences between the versions of terminus. */
const TERMINUS_11 = { knowsDegraded: false };
const TERMINUS_12 = { knowsDegraded: true };

const ready = { state: 'ready', responsive: true } as const;
const blocked = { state: 'ready', responsive: false } as const;
const gone = { state: 'exited', responsive: false } as const;
const draining = { state: 'draining', responsive: true } as const;
const silent = { state: 'starting', responsive: false } as const;

type Worker = Pick<WorkerSnapshot, 'state' | 'responsive'> & Partial<WorkerSnapshot>;

interface Asked {
  ageMs?: number;
  minReady?: MinReady;
  /** The pid of the process that is asked. */
  pid?: number;
  drains?: 'before' | 'meanwhile';
  terminus?: typeof TERMINUS_12;
}

/** The indicator's result for a cluster of four slots with these workers. The pids begin at 100. */
async function check(
  workers: readonly Worker[],
  about: Partial<ClusterSnapshot> = {},
  { ageMs = 0, minReady, pid = 1, drains, terminus = TERMINUS_12 }: Asked = {},
) {
  const link = {
    accepting: drains !== 'before',
    identity: { slot: 0, pid, generation: 0 },
    snapshot: async () => {
      link.accepting &&= drains === undefined;
      const all = workers.map((each, i) => ({ slot: i, pid: 100 + i, ...each }) as WorkerSnapshot);
      return { snapshot: { ...SNAPSHOT, desired: 4, workers: all, ...about }, ageMs };
    },
  };
  const indicator = new ClusterHealthIndicator(link, terminus);
  return (await indicator.check('cluster', minReady === undefined ? {} : { minReady })).cluster;
}

describe('the health of the cluster', () => {
  it('has its numbers, and ports only where each slot has one of its own', async () => {
    const { workers, ...report } = await check([ready, ready, gone, gone]);
    expect(workers).toHaveLength(4);
    expect(report).toEqual({
      status: 'up',
      desired: 4,
      ready: 2,
      generation: 0,
      degraded: 0,
      balancing: 'shared',
    });
    expect(await check([], { ports: [1, 2] })).toMatchObject({ status: 'down', ports: [1, 2] });
  });

  it('says how old it is only where the primary did not confirm it', async () => {
    expect(await check([ready], {}, { ageMs: 700 })).toMatchObject({ snapshotAgeMs: 700 });
    expect(await check([ready])).not.toHaveProperty('snapshotAgeMs');
  });

  it.each(['before', 'meanwhile'] as const)('is down in a drain that began %s', async (drains) => {
    expect(await check([ready], {}, { drains })).toMatchObject({
      status: 'down',
      reason: 'this worker is draining',
    });
  });

  it.each([
    [undefined, 1, 'up'],
    [undefined, 0, 'down'],
    [3, 2, 'down'],
    [3, 3, 'up'],
    [0.5, 2, 'up'],
    [0.5, 1, 'down'],
    [0.51, 2, 'down'],
    ['all', 3, 'down'],
    ['all', 4, 'up'],
  ] as const)('with minReady %s and %d of 4 ready is %s', async (minReady, count, status) => {
    const workers = Array.from({ length: 4 }, (_, i) => (i < count ? ready : draining));
    expect(await check(workers, {}, { minReady: minReady as MinReady })).toMatchObject({ status });
  });

  const replaced = (old: Worker) => [
    { ...old, slot: 0 },
    { ...ready, slot: 0, pid: 200 },
  ];

  it.each<[string, readonly Worker[], Asked & { degraded?: number }, string, reason?: string]>([
    [
      'workers are missing',
      [ready, ready, gone, silent],
      { minReady: 'all' },
      'down',
      '2 of 4 required workers are ready',
    ],
    [
      'two ready workers have one slot',
      replaced(ready),
      { minReady: 2 },
      'down',
      '1 of 2 required workers are ready',
    ],
    [
      'a needed worker does not answer',
      [ready, blocked, gone, gone],
      { minReady: 2 },
      'down',
      '1 of 2 required workers are ready and answer; 1 worker does not answer',
    ],
    [
      'needed workers do not answer',
      [ready, blocked, blocked, ready],
      { minReady: 'all' },
      'down',
      '2 of 4 required workers are ready and answer; 2 workers do not answer',
    ],
    [
      'another worker does not answer',
      replaced(blocked),
      {},
      'degraded',
      '1 worker does not answer',
    ],
    ['only the primary waits for this worker', [blocked, gone], { pid: 100 }, 'up'],
    ['a worker that starts does not answer', [ready, silent], {}, 'up'],
    [
      'there is a crash loop, and a worker does not answer',
      [ready, blocked, gone, gone],
      { degraded: 2 },
      'degraded',
      '2 of 4 workers are in a crash loop; 1 worker does not answer',
    ],
    [
      'there is a crash loop, and too few are ready',
      [gone],
      { degraded: 4 },
      'down',
      '0 of 1 required workers are ready',
    ],
    [
      'there is a crash loop, and terminus has no degraded',
      [ready],
      { degraded: 1, terminus: TERMINUS_11 },
      'up',
      '1 of 4 workers are in a crash loop',
    ],
  ])('if %s', async (_, workers, { degraded = 0, ...asked }, status, reason) => {
    const report = await check(workers, { degraded }, asked);
    expect([report.status, Reflect.get(report, 'reason')]).toEqual([status, reason]);
  });
});

describe('the health of the event loop', () => {
  const numbers = { eventLoopUtilization: 0.5, eventLoopDelayP99Ms: 81 };
  const indicator = new EventLoopHealthIndicator(
    { stats: () => numbers as WorkerStats },
    TERMINUS_12,
  );

  it.each([
    { maxDelayMs: undefined, status: 'up' },
    { maxDelayMs: 102, status: 'up' },
    { maxDelayMs: 100, status: 'degraded', message: 'near its limit of 100' },
    { maxDelayMs: 80, status: 'down', message: 'above its limit of 80' },
  ])('with a limit of $maxDelayMs ms is $status at 81', ({ maxDelayMs, status, message }) => {
    expect(indicator.check('loop', { maxDelayMs })).toEqual({
      loop: {
        ...numbers,
        status,
        ...(message && { message: `eventLoopDelayP99Ms is 81, ${message}` }),
      },
    });
  });
});

describe('the health of the threads', () => {
  const details = { threads: 2, running: 1, maxQueue: 10 };

  it.each([
    { limit: undefined, queueSize: 30, status: 'up' },
    { limit: 10, queueSize: 8, status: 'up' },
    { limit: 10, queueSize: 9, status: 'degraded', message: 'near its limit of 10' },
    { limit: 10, queueSize: 10, status: 'degraded', message: 'near its limit of 10' },
    { limit: 10, queueSize: 11, status: 'down', message: 'above its limit of 10' },
    { limit: 0, queueSize: 0, status: 'up' },
    { limit: 0, queueSize: 1, status: 'down', message: 'above its limit of 0' },
  ])(
    'with a limit of $limit is $status while $queueSize wait',
    ({ limit, queueSize, status, message }) => {
      const offload = { snapshot: () => ({ threads: 2, running: 1, queueSize }) } as Offload;
      const options = resolveModuleOptions({ offload: { maxQueue: 10 } }, {});
      const indicator = new OffloadHealthIndicator(TERMINUS_12, offload, options);
      expect(indicator.check('pool', { maxQueueSize: limit })).toEqual({
        pool: {
          ...details,
          queueSize,
          status,
          ...(message && { message: `queueSize is ${queueSize}, ${message}` }),
        },
      });
    },
  );
});
