import type { HealthIndicatorService } from '@nestjs/terminus';
import { describe, expect, it } from 'vitest';
import { ClusterHealthIndicator } from '../../src/health/cluster.health.js';
import type { MinReady } from '../../src/options/module.js';
import type { ClusterLink, ClusterSnapshot } from '../../src/snapshot/index.js';

const SNAPSHOT: ClusterSnapshot = {
  balancing: 'shared',
  ports: [],
  desired: 4,
  ready: 2,
  minReady: 1,
  generation: 3,
  degraded: 1,
  reloads: { completed: 0, aborted: 0 },
  dismissed: [],
  workers: [],
  primary: null,
};

/** What the indicator says, as terminus would put it. */
async function check(
  snapshot: Partial<ClusterSnapshot> = {},
  {
    ageMs = 0,
    accepting = true,
    minReady,
  }: { ageMs?: number; accepting?: boolean; minReady?: MinReady } = {},
) {
  const link = {
    accepting,
    snapshot: async () => ({ snapshot: { ...SNAPSHOT, ...snapshot }, ageMs }),
  } as unknown as ClusterLink;
  const health = {
    check: (key: string) => ({
      up: (report: object) => ({ [key]: { status: 'up', ...report } }),
      down: (report: object) => ({ [key]: { status: 'down', ...report } }),
    }),
  } as unknown as HealthIndicatorService;
  const indicator = new ClusterHealthIndicator(link, health);
  const { cluster } = await indicator.check('cluster', minReady === undefined ? {} : { minReady });
  return cluster;
}

describe('the health of the cluster', () => {
  it('has the port of each slot where each has one of its own', async () => {
    expect(await check({ balancing: 'ports', ports: [3_000, 3_001] })).toMatchObject({
      balancing: 'ports',
      ports: [3_000, 3_001],
    });
  });

  it('has no ports where they share one', async () => {
    expect(await check()).toEqual({
      status: 'up',
      desired: 4,
      ready: 2,
      generation: 3,
      degraded: 1,
      balancing: 'shared',
      workers: [],
    });
  });

  it('has ports also where it is down', async () => {
    expect(await check({ ready: 0, ports: [1, 2] })).toMatchObject({
      status: 'down',
      ports: [1, 2],
    });
    expect(await check({ ports: [1, 2] }, { accepting: false })).toMatchObject({
      status: 'down',
      reason: 'this worker is draining',
      ports: [1, 2],
    });
  });

  it('says how old it is only where the primary did not confirm it', async () => {
    expect(await check({}, { ageMs: 700 })).toMatchObject({ snapshotAgeMs: 700 });
    expect(await check()).not.toHaveProperty('snapshotAgeMs');
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
  ] as const)('with minReady %s and %d of 4 ready is %s', async (minReady, ready, status) => {
    expect(await check({ ready }, { minReady: minReady as MinReady })).toMatchObject({ status });
  });

  it('says how many are missing', async () => {
    expect(await check({ ready: 2 }, { minReady: 'all' })).toMatchObject({
      reason: '2 of 4 needed workers are ready',
    });
  });
});
