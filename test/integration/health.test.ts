import { afterEach, describe, expect, it } from 'vitest';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import type { HealthBody } from '../support/health.js';
import { HeldBoots } from '../support/held-boots.js';
import { getJson, request } from '../support/http-client.js';
import { scrape } from '../support/scrape.js';

afterEach(stopAll);

/** Kills nobody. */
const PATIENT = 120_000;

/** Resolves once it is ready by its own account: heartbeats of a busy machine may be late. */
async function ready({ url }: ClusterProcess): Promise<void> {
  await eventually(
    'readiness',
    async () => (await request(url, '/health/ready')).status,
    (status) => status === 200,
  );
}

const worker0 = { worker: '0' };
const worker1 = { worker: '1' };

/** While worker 0 does not answer, worker 1 must answer at once and report worker 0. */
async function expectWorker0Reported(cluster: ClusterProcess): Promise<void> {
  // A machine that is busy elsewhere delays one answer, not each.
  for (const path of ['/health', '/health/live', '/health/ready', '/metrics']) {
    await eventually(
      `an answer of ${path} within a second`,
      () => request(cluster.url, path),
      ({ status, tookMs }) => {
        expect([path, status]).toEqual([path, 200]);
        return tookMs < 1_000;
      },
    );
  }

  // On a busy machine the other may be late too, for a moment.
  const { details } = await eventually(
    'the cluster to be degraded for it alone',
    async () => (await getJson<HealthBody>(cluster.url, '/health')).body,
    (body) =>
      body.status === 'degraded' && body.details.cluster.reason === '1 worker does not answer',
  );
  expect(details.cluster).toMatchObject({ status: 'degraded', ready: 2, workers: [{}, {}] });

  const page = await eventually(
    'metrics that say so',
    () => scrape(cluster.url),
    (metrics) =>
      metrics.sum('nestjs_cluster_worker_up', worker0) === 0 &&
      metrics.sum('nestjs_cluster_worker_up', worker1) === 1 &&
      metrics.sum('nestjs_cluster_worker_snapshot_age_seconds', worker0) > 1 &&
      metrics.sum('nestjs_cluster_worker_snapshot_age_seconds', worker1) < 1,
  );
  expect(page.sum('nestjs_cluster_worker_heartbeat_age_seconds', worker0)).toBeGreaterThan(1);
  expect(page.sum('nestjs_cluster_worker_heartbeat_age_seconds', worker1)).toBeLessThan(
    page.sum('nestjs_cluster_worker_heartbeat_age_seconds', worker0),
  );
  // Metrics that worker 0 sent before remain on the page.
  expect(page.values('nestjs_cluster_worker_resident_memory_bytes', worker0)).toHaveLength(1);
}

describe('a worker that does not answer', () => {
  it('is told by the other when it is stopped', async () => {
    const cluster = await ClusterProcess.start({ options: { hangTimeoutMs: PATIENT } });
    await request(cluster.url, '/metrics');
    const [stopped] = cluster.workerPids;

    process.kill(stopped!, 'SIGSTOP');

    await expectWorker0Reported(cluster);
    process.kill(stopped!, 'SIGCONT');
    const page = await eventually(
      'it to be up again',
      () => scrape(cluster.url),
      (metrics) =>
        metrics.sum('nestjs_cluster_worker_up') === 2 &&
        metrics.sum('nestjs_cluster_worker_snapshot_age_seconds') < 1,
    );
    expect(page.values('nestjs_cluster_worker_up')).toEqual([1, 1]);
    expect(cluster.workerPids).toContain(stopped);
  });
});

describe.each([
  { minReady: 1, status: 200 },
  { minReady: 'all', status: 503 },
])('with one of two workers down and minReady $minReady', ({ minReady, status }) => {
  it(`is live, and answers ${status} for ready`, async () => {
    const boots = new HeldBoots();
    const cluster = await ClusterProcess.start({
      execArgv: boots.execArgv,
      env: { ...boots.env, TEST_MODULE_OPTIONS: JSON.stringify({ health: { minReady } }) },
    });
    await ready(cluster);
    const [victim] = cluster.workerPids;
    boots.begin();

    process.kill(victim!, 'SIGKILL');
    await cluster.event('worker-restarting');

    expect((await request(cluster.url, '/health/live')).status).toBe(200);
    // The answering worker learns the state from the primary, which may be late.
    const health = await eventually(
      'one ready worker',
      () => getJson<HealthBody>(cluster.url, '/health'),
      ({ body }) => body.details.cluster.ready === 1,
    );
    expect(health.status).toBe(status);
    expect((await request(cluster.url, '/health/ready')).status).toBe(status);
    const { cluster: report } = health.body.details;
    expect(report).toMatchObject({
      status: status === 200 ? 'up' : 'down',
      desired: 2,
      ready: 1,
      degraded: 0,
    });
    expect(report.workers[0]).toMatchObject({
      slot: 0,
      restarts: 1,
      lastExit: { cause: 'killed', code: null, signal: 'SIGKILL' },
    });
    expect(report.workers[1]).toMatchObject({ slot: 1, state: 'ready', lastExit: null });
    if (status === 503) {
      expect(health.body.error).toHaveProperty('cluster');
      expect(report.reason).toMatch(/1 of 2/);
    }
  });
});
