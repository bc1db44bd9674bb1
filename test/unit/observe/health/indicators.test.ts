import { describe, expect, it } from 'vitest';
import { type MinReady, resolveModuleOptions } from '../../../../src/contract/options/module.js';
import type { ClusterSnapshot, WorkerSnapshot } from '../../../../src/contract/snapshot/index.js';
import type { WorkerStats } from '../../../../src/contract/stats.js';
import {
  ClusterHealthIndicator,
  EventLoopHealthIndicator,
  OffloadHealthIndicator,
} from '../../../../src/observe/health/indicators.js';
import type { Offload } from '../../../../src/offload/offload.service.js';
import { TERMINUS_11, TERMINUS_12 } from '../../support/fake-terminus.js';

const SNAPSHOT: ClusterSnapshot = {
  balancing: 'shared',
  ports: [],
  desired: 4,
  ready: 2,
  generation: 3,
  degraded: 0,
  reloads: { completed: 0, aborted: 0, reverted: 0 },
  dismissed: [],
  minReady: 1,
  primary: null,
  workers: [],
};

const ready = { state: 'ready', responsive: true } as const;
const blocked = { state: 'ready', responsive: false } as const;
const gone = { state: 'exited', responsive: false } as const;
const starting = { state: 'starting', responsive: true } as const;

type Worker = Pick<WorkerSnapshot, 'state' | 'responsive'> & Partial<WorkerSnapshot>;

/** One worker a slot, of which the pid is 100 more, if it says nothing else. */
function workersOf(workers: readonly Worker[]): WorkerSnapshot[] {
  return workers.map((worker, i) => ({ slot: i, pid: 100 + i, ...worker }) as WorkerSnapshot);
}

interface Asked {
  ageMs?: number;
  accepting?: boolean;
  minReady?: MinReady;
  /** The pid of the process that is asked. */
  pid?: number;
  terminus?: typeof TERMINUS_12;
}

/** The indicator's result for a cluster of four slots with these workers. */
async function check(
  workers: readonly Worker[] = [ready, ready, gone, gone],
  snapshot: Partial<ClusterSnapshot> = {},
  { ageMs = 0, accepting = true, minReady, pid = 1, terminus }: Asked = {},
) {
  const link = {
    accepting,
    identity: { slot: 0, pid, generation: 0 },
    snapshot: async () => ({
      snapshot: { ...SNAPSHOT, workers: workersOf(workers), ...snapshot },
      ageMs,
    }),
  };
  const indicator = new ClusterHealthIndicator(link, terminus ?? TERMINUS_12);
  const { cluster } = await indicator.check('cluster', minReady === undefined ? {} : { minReady });
  return cluster;
}

describe('the health of the cluster', () => {
  it('has the port of each slot where each has one of its own', async () => {
    expect(await check([ready], { balancing: 'ports', ports: [3_000, 3_001] })).toMatchObject({
      balancing: 'ports',
      ports: [3_000, 3_001],
    });
  });

  it('has no ports where they share one', async () => {
    const { workers, ...report } = await check();
    expect(workers).toHaveLength(4);
    expect(report).toEqual({
      status: 'up',
      desired: 4,
      ready: 2,
      generation: 3,
      degraded: 0,
      balancing: 'shared',
    });
  });

  it('has ports also where it is down', async () => {
    expect(await check([], { ports: [1, 2] })).toMatchObject({ status: 'down', ports: [1, 2] });
    expect(await check([ready], { ports: [1, 2] }, { accepting: false })).toMatchObject({
      status: 'down',
      reason: 'this worker is draining',
      ports: [1, 2],
    });
  });

  it('says how old it is only where the primary did not confirm it', async () => {
    expect(await check([ready], {}, { ageMs: 700 })).toMatchObject({ snapshotAgeMs: 700 });
    expect(await check()).not.toHaveProperty('snapshotAgeMs');
  });

  it('knows of a drain that began while the primary was asked', async () => {
    const link = {
      accepting: true,
      identity: { slot: 0, pid: 1, generation: 0 },
      snapshot: async () => {
        link.accepting = false;
        return { snapshot: { ...SNAPSHOT, workers: workersOf([ready]) }, ageMs: 0 };
      },
    };
    const indicator = new ClusterHealthIndicator(link, TERMINUS_12);
    expect((await indicator.check()).cluster).toMatchObject({ reason: 'this worker is draining' });
  });

  it.each([
    [undefined, 1, 'up'],
    [undefined, 0, 'down'],
    [3, 2, 'down'],
    [3, 3, 'up'],
    [0.5, 2, 'up'],
    [0.5, 1, 'down'],
    [0.51, 2, 'down'],
    [0.51, 3, 'up'],
    ['all', 3, 'down'],
    ['all', 4, 'up'],
  ] as const)('with minReady %s and %d of 4 ready is %s', async (minReady, count, status) => {
    const workers = Array.from({ length: 4 }, (_, i) => (i < count ? ready : gone));
    expect(await check(workers, {}, { minReady: minReady as MinReady })).toMatchObject({ status });
  });

  it('says how many are missing', async () => {
    expect(await check([ready, ready, gone, starting], {}, { minReady: 'all' })).toMatchObject({
      reason: '2 of 4 needed workers are ready',
    });
  });

  it('counts a slot once, however many of its workers are ready', async () => {
    const replaced = [
      { ...ready, slot: 0 },
      { ...ready, slot: 0, pid: 200 },
    ];
    expect(await check(replaced, {}, { minReady: 2 })).toMatchObject({
      status: 'down',
      reason: '1 of 2 needed workers are ready',
    });
  });

  it('counts no worker that is draining', async () => {
    const worker = { state: 'draining' as const, responsive: true };
    expect(await check([gone, gone, gone, gone, worker])).toMatchObject({ status: 'down' });
  });
});

describe('a worker that is ready and does not answer', () => {
  it('does not count for minReady, and the reason says so', async () => {
    expect(await check([ready, blocked, gone, gone], {}, { minReady: 2 })).toMatchObject({
      status: 'down',
      ready: 2,
      reason: '1 of 2 needed workers are ready and answer; 1 worker does not answer',
    });
    expect(await check([ready, blocked, blocked, ready], {}, { minReady: 'all' })).toMatchObject({
      status: 'down',
      reason: '2 of 4 needed workers are ready and answer; 2 workers do not answer',
    });
  });

  it('makes the cluster degraded where enough others do', async () => {
    expect(await check([ready, blocked, ready, gone], {}, { minReady: 2 })).toMatchObject({
      status: 'degraded',
      reason: '1 worker does not answer',
    });
  });

  it('does not take the place from another of its slot that does', async () => {
    const replaced = [
      { ...blocked, slot: 0 },
      { ...ready, slot: 0, pid: 200 },
    ];
    expect(await check(replaced)).toMatchObject({ status: 'degraded' });
  });

  it('does answer where it is the one that is asked, whatever the primary has heard', async () => {
    expect(await check([blocked, gone], {}, { pid: 100 })).toMatchObject({ status: 'up' });
  });

  it('is none that is still starting, leaving or gone', async () => {
    const silent = { responsive: false } as const;
    const others: Worker[] = [
      { ...silent, state: 'starting' },
      { ...silent, state: 'draining' },
      { ...silent, state: 'exited' },
    ];
    expect(await check([ready, ...others])).toMatchObject({ status: 'up' });
  });
});

describe('a crash loop', () => {
  it('makes the cluster degraded where enough workers are ready', async () => {
    expect(await check([ready, ready, gone, ready], { degraded: 1 })).toMatchObject({
      status: 'degraded',
      degraded: 1,
      reason: '1 of 4 workers are in a crash loop',
    });
  });

  it('is told beside a worker that does not answer', async () => {
    expect(await check([ready, blocked, gone, gone], { degraded: 2 })).toMatchObject({
      status: 'degraded',
      reason: '2 of 4 workers are in a crash loop; 1 worker does not answer',
    });
  });

  it('changes nothing where too few are', async () => {
    expect(await check([gone, gone, gone, gone], { degraded: 4 })).toMatchObject({
      status: 'down',
      reason: '0 of 1 needed workers are ready',
    });
  });

  it('leaves the cluster up where terminus has no degraded', async () => {
    expect(await check([ready], { degraded: 1 }, { terminus: TERMINUS_11 })).toMatchObject({
      status: 'up',
      reason: '1 of 4 workers are in a crash loop',
    });
  });
});

describe('the health of the event loop', () => {
  const numbers = { eventLoopUtilization: 0.5, eventLoopDelayP99Ms: 81 };
  const link = { stats: () => numbers as WorkerStats };
  const indicator = new EventLoopHealthIndicator(link, TERMINUS_12);

  it('is up with its numbers where there is no limit', () => {
    expect(indicator.check()).toEqual({ eventLoop: { ...numbers, status: 'up' } });
    expect(indicator.check('loop', { maxDelayMs: undefined })).toMatchObject({
      loop: { status: 'up' },
    });
  });

  it.each([
    { maxDelayMs: 102, status: 'up' },
    { maxDelayMs: 100, status: 'degraded', message: 'near its limit of 100' },
    { maxDelayMs: 80, status: 'down', message: 'above its limit of 80' },
  ])('with a limit of $maxDelayMs ms is $status at 81', ({ maxDelayMs, status, message }) => {
    expect(indicator.check('eventLoop', { maxDelayMs })).toEqual({
      eventLoop: {
        ...numbers,
        status,
        ...(message && { message: `eventLoopDelayP99Ms is 81, ${message}` }),
      },
    });
  });

  it('is up, and says why not wholly, where terminus has no degraded', () => {
    const old = new EventLoopHealthIndicator(link, TERMINUS_11);
    expect(old.check('eventLoop', { maxDelayMs: 100 }).eventLoop).toEqual({
      ...numbers,
      status: 'up',
      message: 'eventLoopDelayP99Ms is 81, near its limit of 100',
    });
    expect(old.check('eventLoop', { maxDelayMs: 80 }).eventLoop).toMatchObject({ status: 'down' });
  });
});

describe('the health of the threads', () => {
  const details = { threads: 2, running: 1, maxQueue: 10 };
  const indicatorFor = (queueSize: number) => {
    const offload = { snapshot: () => ({ threads: 2, running: 1, queueSize }) } as Offload;
    const options = resolveModuleOptions({ offload: { maxQueue: 10 } }, {});
    return new OffloadHealthIndicator(TERMINUS_12, offload, options);
  };

  it('is up with its numbers where there is no limit', () => {
    const indicator = indicatorFor(3);
    const up = { status: 'up', ...details, queueSize: 3 };
    expect(indicator.check()).toEqual({ offload: up });
    expect(indicator.check('pool')).toEqual({ pool: up });
  });

  it.each([
    { limit: 10, queueSize: 8, status: 'up' },
    {
      limit: 10,
      queueSize: 9,
      status: 'degraded',
      message: 'queueSize is 9, near its limit of 10',
    },
    { limit: 10, queueSize: 10, status: 'degraded', message: expect.stringContaining('near') },
    { limit: 10, queueSize: 11, status: 'down', message: 'queueSize is 11, above its limit of 10' },
    { limit: 0, queueSize: 0, status: 'up' },
    { limit: 0, queueSize: 1, status: 'down', message: 'queueSize is 1, above its limit of 0' },
  ])('with a limit of $limit is $status while $queueSize wait', ({ limit, queueSize, ...why }) => {
    expect(indicatorFor(queueSize).check('offload', { maxQueueSize: limit })).toEqual({
      offload: { ...details, queueSize, ...why },
    });
  });
});
