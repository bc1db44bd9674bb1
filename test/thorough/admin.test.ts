import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { freePorts } from '../support/free-ports.js';
import type { HealthBody } from '../support/health.js';
import { getJson, request } from '../support/http-client.js';
import { RawClient } from '../support/raw-client.js';
import { scrape, scrapeAll } from '../support/scrape.js';

/** The statuses of a cluster's `/health/live` and `/health/ready`, and the reason it gives. */
async function probe(url: string) {
  const { status: live } = await request(url, '/health/live');
  const { status: ready, body } = await getJson<HealthBody>(url, '/health/ready');
  return { live, ready, reason: body.details.cluster.reason };
}

/** Pings often, so that a test need not wait; kills nobody. */
const PATIENT = 120_000;

// One cluster for all: what one test does to it, it undoes.
describe('the admin listener', () => {
  let cluster: ClusterProcess;
  let admin: string;

  beforeAll(async () => {
    cluster = await ClusterProcess.start({
      options: {
        admin: { port: 0 },
        hangTimeoutMs: PATIENT,
        shutdown: { drainTimeoutMs: 60_000 },
      },
      env: behaviour('metrics#ofEachType'),
    });
    admin = cluster.adminUrl;
    // So that each worker has sent what it measures.
    await scrapeAll(cluster.url);
  });

  afterAll(stopAll);

  it('has no time for clients that send nothing, or a byte now and then', async () => {
    const slow = await RawClient.open(admin);
    // There is room for 64.
    const idle = await Promise.all(Array.from({ length: 63 }, () => RawClient.open(admin)));
    onTestFinished(() => idle.forEach((client) => client.destroy()));
    expect((await request(admin, '/health/live')).outcome).toBe('reset');
    const text = 'GET /metrics HTTP/1.1\r\n'.padEnd(80, 'x');
    let sent = 0;
    const typing = setInterval(() => slow.write(text[sent++ % text.length]!), 500);
    onTestFinished(() => clearInterval(typing));

    await slow.end(); // after 5 s
    expect(slow.text).toMatch(/^(HTTP\/1\.1 408 |$)/);
    await Promise.all(idle.map((client) => client.end()));
    expect((await request(admin, '/health/live')).status).toBe(200);
  });

  it('answers while the cluster drains, and ends with it', async () => {
    const held = await RawClient.open(cluster.url);
    held.get('/wait/60000');
    await eventually(
      'a request in flight',
      () => scrape(admin),
      (page) => page.sum('nestjs_cluster_worker_requests_in_flight') === 1,
    );

    cluster.kill('SIGTERM');
    await cluster.event('worker-draining');

    const { details } = (await getJson<HealthBody>(admin, '/health')).body;
    expect(details.cluster.status).toBe('down');
    expect(await probe(admin)).toEqual({
      live: 200,
      ready: 503,
      reason: '0 of 1 required workers are ready',
    });
    const page = await scrape(admin);
    expect(page.sum('nestjs_cluster_workers', { state: 'ready' })).toBe(0);
    expect(page.sum('nestjs_cluster_workers', { state: 'draining' })).toBeGreaterThan(0);
    expect(page.values('nestjs_cluster_worker_up')).toEqual([0, 0]);
    held.destroy();
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
    expect(cluster.survivors()).toEqual([]);
    expect((await request(admin, '/health/live')).outcome).toBe('refused');
  });
});

describe('the admin listener of a cluster', () => {
  afterEach(stopAll);

  it('answers while no worker is ready yet', async () => {
    const port = await freePorts(1);
    const admin = `http://127.0.0.1:${port}`;
    const cluster = new ClusterProcess({
      options: { admin: { port } },
      env: { ...behaviour('crashes#blocksBoot'), TEST_SLOTS: '0,1' },
    });
    await cluster.until('both blocked', () => cluster.output.split('blocking').length > 2);

    expect(await probe(admin)).toEqual({
      live: 200,
      ready: 503,
      reason: '0 of 1 required workers are ready',
    });
    const page = await scrape(admin);
    expect(page.sum('nestjs_cluster_workers', { state: 'starting' })).toBe(2);
    expect(page.values('nestjs_cluster_worker_up')).toEqual([0, 0]);
    cluster.kill('SIGTERM');
    expect((await cluster.exited()).signal).toBeNull();
    expect(cluster.survivors()).toEqual([]);
  });

  it('is not there with workers: 0, which is told', async () => {
    const port = await freePorts(1);
    const cluster = await ClusterProcess.start({ options: { workers: 0, admin: { port } } });

    expect(cluster.all('warning').map(({ message }) => message)).toEqual([
      "the admin listener is disabled, because workers: 0 has no primary; use the app's own endpoints",
    ]);
    expect(cluster.all('listening')).toMatchObject([{ adminUrl: null }]);
    expect((await request(`http://127.0.0.1:${port}`, '/health/live')).outcome).toBe('refused');
    expect((await request(cluster.url, '/health/live')).status).toBe(200);
  });
});

describe('the admin listener for other machines', () => {
  afterEach(stopAll);

  it('wants the token that workers are not given, and is the only one with details', async () => {
    const token = 'a-secret-of-the-operator';
    const cluster = await ClusterProcess.start({
      options: { admin: { port: 0 }, expose: 'admin' },
      env: { CLUSTER_ADMIN_TOKEN: token },
    });
    const admin = cluster.adminUrl;
    const headers = { authorization: `Bearer ${token}`, host: 'my-pod.example:9464' };
    await request(cluster.url, '/hello');

    expect((await request(admin, '/metrics')).status).toBe(401);
    const page = await request(admin, '/metrics', { headers });
    expect(page.status).toBe(200);
    expect(page.body).toContain('http_request_duration_seconds_count{');
    const { body } = await request(admin, '/health', { headers });
    expect(body).toContain(`"pid":${cluster.workerPids[0]}`);

    expect((await request(cluster.url, '/metrics')).status).toBe(404);
    const health = JSON.parse((await request(cluster.url, '/health')).body) as HealthBody;
    expect(health.details.cluster).toEqual({ status: 'up' });
    expect(cluster.all('listening')[0]!['endpoints']).not.toContain('/metrics');

    for (const pid of cluster.workerPids) {
      expect(readFileSync(`/proc/${pid}/environ`, 'latin1')).not.toContain('CLUSTER_ADMIN_TOKEN');
    }
    expect(cluster.output).not.toContain(token);
  });
});
