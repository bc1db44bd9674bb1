import { afterEach, describe, expect, it } from 'vitest';
import type { ClusterSnapshot } from 'nestjs-cluster';
import { ONE_ADAPTER, OTHER_ADAPTER } from '../support/adapters.js';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { clusterReport, type HealthBody } from '../support/health.js';
import { getJson, request } from '../support/http-client.js';
import { MetricsPage } from '../support/metrics-page.js';
import { scrape, scrapeAll } from '../support/scrape.js';

afterEach(stopAll);

const ENDPOINTS = ['/health', '/health/live', '/health/ready', '/metrics'] as const;

const ADAPTERS = ['express', 'fastify', 'node'] as const;

const DURATION = 'http_request_duration_seconds';

const REFUSED_BY_PIPE = {
  status: 400,
  body: expect.objectContaining({ message: 'refused by the global pipe' }) as unknown,
};

async function statuses(cluster: ClusterProcess, paths: readonly string[]) {
  const answers = await Promise.all(paths.map((path) => request(cluster.url, path)));
  return Object.fromEntries(paths.map((path, i) => [path, answers[i]!.status]));
}

/** Starts one worker with options of `forRoot()`. */
function startWith(moduleOptions: object, env: Record<string, string> = {}) {
  return ClusterProcess.start({
    options: { workers: 1 },
    env: { TEST_MODULE_OPTIONS: JSON.stringify(moduleOptions), ...env },
  });
}

describe('the options of forRoot()', () => {
  it('health.path moves all three endpoints, and metrics.path the page', async () => {
    const cluster = await startWith(
      { health: { path: '/internal/state' }, metrics: { path: '/internal/metrics' } },
      { TEST_ADAPTER: ONE_ADAPTER },
    );

    const paths = ['/internal/state', '/internal/state/live', '/internal/state/ready'];
    const moved = [...paths, '/internal/metrics'];
    expect(await statuses(cluster, moved)).toEqual(
      Object.fromEntries(moved.map((path) => [path, 200])),
    );
    expect(Object.values(await statuses(cluster, ENDPOINTS))).toEqual([404, 404, 404, 404]);
    const announced = cluster.all('listening')[0]!['endpoints'] as string[];
    expect(announced.toSorted()).toEqual(moved.toSorted());
  });

  it("metrics.buckets are the histogram's, perWorker labels it, and health: false leaves its endpoints out", async () => {
    const cluster = await startWith({
      health: false,
      metrics: { buckets: [0.5, 2, 60], perWorker: true },
    });
    await request(cluster.url, '/hello');

    const page = await scrape(cluster.url);

    expect(page.labelValues(`${DURATION}_bucket`, 'le')).toEqual(['0.5', '2', '60', '+Inf']);
    expect(page.values(`${DURATION}_count`, { worker: '0' })).toEqual([1]);
    expect(page.values('nestjs_cluster_worker_up')).toEqual([1]);
    expect(Object.values(await statuses(cluster, ENDPOINTS))).toEqual([404, 404, 404, 200]);
  });
});

// Each feature once, and each way to have versions, a path or a refusal on both adapters.
describe('the endpoints stay as they are', () => {
  it.each<{
    adapter: (typeof ADAPTERS)[number];
    features: string;
    probe: { path: string; headers?: Record<string, string> };
    answer: { status: number; body: unknown };
  }>([
    {
      adapter: 'express',
      features: 'uri-default,prefix,interceptor',
      probe: { path: '/api/v1/probe/1' },
      answer: { status: 200, body: { wrapped: { id: '1' } } },
    },
    {
      adapter: 'fastify',
      features: 'header-default,prefix,interceptor',
      probe: { path: '/api/probe/1', headers: { 'X-Version': '1' } },
      answer: { status: 200, body: { wrapped: { id: '1' } } },
    },
    {
      adapter: 'express',
      features: 'header,pipe',
      probe: { path: '/probe/1', headers: { 'X-Version': '1' } },
      answer: REFUSED_BY_PIPE,
    },
    {
      adapter: 'fastify',
      features: 'uri,pipe',
      probe: { path: '/v1/probe/1' },
      answer: REFUSED_BY_PIPE,
    },
    ...ADAPTERS.map((adapter) => ({
      adapter,
      features: 'media,guard',
      probe: { path: '/probe/1', headers: { Accept: 'application/json;v=1' } },
      answer: { status: 403, body: expect.objectContaining({ statusCode: 403 }) as unknown },
    })),
  ])('whatever $features does to the app, on $adapter', async (row) => {
    const { adapter, features, probe, answer } = row;
    const cluster = await ClusterProcess.start({
      options: { workers: 1 },
      env: {
        ...behaviour('global-features'),
        TEST_FEATURES: features,
        TEST_ADAPTER: adapter,
      },
    });

    // That the feature is in force.
    const probed = await request(cluster.url, probe.path, { headers: probe.headers ?? {} });
    expect({ status: probed.status, body: JSON.parse(probed.body) }).toEqual(answer);

    // Asked as an orchestrator does, and with the headers of a client of the app.
    for (const headers of [{}, probe.headers ?? {}, { Accept: '*/*' }]) {
      for (const path of ENDPOINTS) {
        const { status, headers: received, body } = await request(cluster.url, path, { headers });
        expect([path, status]).toEqual([path, 200]);
        expect(received['cache-control']).toBe('no-store');
        if (path === '/metrics') {
          expect(received['content-type']).toMatch(/^text\/plain; version=0\.0\.4/);
          expect(new MetricsPage(body).values('nestjs_cluster_worker_up')).toEqual([1]);
        } else {
          expect(received['content-type']).toMatch(/^application\/json/);
          expect(JSON.parse(body)).toMatchObject({ status: 'ok', error: {} });
        }
      }
    }
    // As some balancers ask.
    for (const path of ENDPOINTS) {
      const { status, body } = await request(cluster.url, path, { method: 'HEAD' });
      expect([path, status, body]).toEqual([path, 200, '']);
    }
  });
});

describe('what the module exports', () => {
  it('serves a terminus controller of the app', async () => {
    const cluster = await ClusterProcess.start({
      env: { ...behaviour('own-health'), TEST_ADAPTER: OTHER_ADAPTER },
    });

    const own = await eventually(
      'both workers ready',
      () => getJson<HealthBody>(cluster.url, '/own-health'),
      ({ body }) => body.details['workers']!['ready'] === 2,
    );
    expect(own.status).toBe(200);
    expect(own.body.details).toMatchObject({
      workers: { status: 'up', desired: 2, ready: 2 },
      loop: { status: 'up', eventLoopUtilization: expect.any(Number) },
      threads: { status: 'up' },
    });
    const { body } = await getJson<HealthBody>(cluster.url, '/default-keys');
    expect(Object.keys(body.details)).toEqual(['cluster', 'eventLoop', 'offload']);

    const snapshot = (await getJson<ClusterSnapshot>(cluster.url, '/snapshot')).body;
    expect(snapshot).toMatchObject({ desired: 2, ready: 2, generation: 0, degraded: 0 });
    expect(snapshot.workers.map(({ pid }) => pid)).toEqual(cluster.workerPids);
  });
});

describe('an app that has called listen() itself', () => {
  it.each([
    { adapter: 'express', workers: 2 },
    { adapter: 'fastify', workers: 0 },
  ])('is served all the same, with one warning ($adapter, $workers workers)', async (row) => {
    const { adapter, workers } = row;
    const cluster = await ClusterProcess.start({
      options: { workers },
      env: { ...behaviour('crashes#listens'), TEST_ADAPTER: adapter },
    });

    expect((await request(cluster.url, '/hello')).body).toBe('Hello World!');
    expect(await clusterReport(cluster.url)).toMatchObject({
      status: 'up',
      ready: Math.max(workers, 1),
      desired: Math.max(workers, 1),
    });
    expect((await scrapeAll(cluster.url)).sum(`${DURATION}_count`, { route: '/hello' })).toBe(1);
    expect(cluster.all('warning').map(({ message }) => message)).toEqual([
      expect.stringContaining('listen()'),
    ]);
    cluster.kill('SIGTERM');
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
  });
});
