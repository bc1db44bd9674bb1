import { Injectable, Inject } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { ClusterService } from '../../../src/module/cluster.service.js';
import { ClusterTestingModule, type FakeCluster } from '../../../src/testing/index.js';
import {
  ClusterHealthIndicator,
  EventLoopHealthIndicator,
  OffloadHealthIndicator,
} from '../../../src/observe/health/indicators.js';
import { contextOf } from '../support/nest-app.js';

/** A class of the user that a test would inject the service into. */
@Injectable()
class Subject {
  constructor(@Inject(ClusterService) readonly cluster: ClusterService) {}
}

const start = (cluster?: FakeCluster) =>
  contextOf({ imports: [ClusterTestingModule.forRoot(cluster)], providers: [Subject] });

describe('ClusterTestingModule', () => {
  it('is worker 0 of one, by default', async () => {
    const { cluster } = (await start()).get(Subject);
    expect(cluster.identity).toEqual({ slot: 0, generation: 0, pid: process.pid });
    expect(await cluster.snapshot()).toMatchObject({ desired: 1, ready: 1 });
  });

  it.each([
    { identity: { slot: 0 }, leads: true },
    { identity: { slot: 1 }, leads: false },
  ])('leads by default only as worker 0: $identity', async ({ identity, leads }) => {
    const { cluster } = (await start({ identity })).get(Subject);
    expect(cluster.isLeader).toBe(leads);
  });

  it('is the worker of the cluster that the test makes up', async () => {
    const app = await start({ identity: { slot: 2, generation: 5, pid: 42 }, workers: 4 });
    const { cluster } = app.get(Subject);
    expect(cluster.identity).toEqual({ slot: 2, generation: 5, pid: 42 });
    const { workers, generation } = await cluster.snapshot();
    expect(generation).toBe(5);
    expect(workers.map(({ slot, state }) => [slot, state])).toEqual(
      [0, 1, 2, 3].map((slot) => [slot, 'ready']),
    );
    expect(workers.filter(({ pid }) => pid === 42).map(({ slot }) => slot)).toEqual([2]);
  });

  it('reloads and scales in name only', async () => {
    const { cluster } = (await start({ workers: 2 })).get(Subject);
    expect(await cluster.reload()).toEqual({ outcome: 'completed', generation: 1, reason: null });
    expect(cluster.identity.generation).toBe(1);
    expect(await cluster.scale(3)).toMatchObject({ desired: 3, ready: 3, generation: 1 });
    await expect(cluster.scale(0)).rejects.toMatchObject({ code: 'CLUSTER_CONFIGURATION' });
  });

  it('has the health indicators, all of them up', async () => {
    const app = await start({ workers: 2 });
    expect(
      await app.get(ClusterHealthIndicator).check('cluster', { minReady: 'all' }),
    ).toMatchObject({ cluster: { status: 'up', ready: 2 } });
    expect(app.get(EventLoopHealthIndicator).check()).toMatchObject({
      eventLoop: { status: 'up' },
    });
    expect(app.get(OffloadHealthIndicator).check()).toMatchObject({ offload: { status: 'up' } });
  });

  it('refuses a cluster that there cannot be', () => {
    expect(() => ClusterTestingModule.forRoot({ workers: 1_000 })).toThrow('number of workers');
  });
});
