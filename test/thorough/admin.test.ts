import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { networkInterfaces } from 'node:os';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { adminUrlOf, probe } from '../support/admin.js';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, NODE, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { freePorts } from '../support/free-ports.js';
import type { HealthBody } from '../support/health.js';
import { getJson, Load, request } from '../support/http-client.js';
import { NetworkNamespace } from '../support/network-namespace.js';
import { RawClient } from '../support/raw-client.js';
import { anyPage, hasPrimary, scrape, scrapeAll } from '../support/scrape.js';
import { ANNOUNCE_PROCESSES, startedProcesses } from '../support/started-processes.js';
import { describeWith } from '../support/system-packages.js';

/** Pings often, so that a test need not wait; kills nobody. */
const PATIENT = 120_000;

const hasIPv6 = Object.values(networkInterfaces()).some((addresses) =>
  addresses?.some(({ address }) => address === '::1'),
);

/** Series of a page that name a worker's state. */
const SILENT = { worker: '0' };

/** Runs `during` while each of these processes is stopped. */
async function stopped(pids: readonly number[], during: () => Promise<void>): Promise<void> {
  for (const pid of pids) process.kill(pid, 'SIGSTOP');
  try {
    await during();
  } finally {
    for (const pid of pids) process.kill(pid, 'SIGCONT');
  }
}

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
    admin = adminUrlOf(cluster);
    // So that each worker has sent what it measures.
    await scrapeAll(cluster.url);
  });

  afterAll(stopAll);

  it('serves all four routes, on loopback', async () => {
    expect(admin).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    const { status, body } = await getJson<HealthBody>(admin, '/health');
    expect([status, body.status]).toEqual([200, 'ok']);
    expect(body.details.cluster).toMatchObject({ desired: 2, ready: 2, status: 'up' });
    expect(body.details['primary']).toMatchObject({ pid: cluster.pid, status: 'up' });
    expect(await probe(admin)).toEqual({ live: 200, ready: 200, reason: undefined });
    expect((await scrapeAll(admin)).values('nestjs_cluster_worker_up')).toEqual([1, 1]);
    expect((await request(admin, '/hello')).status).toBe(404);
  });

  it("shows the app's page: the same metrics, the same counts", async () => {
    await request(cluster.url, '/count');
    const app = await scrapeAll(cluster.url);
    const page = await scrapeAll(admin);
    const families = (text: string) =>
      [...text.matchAll(/^# TYPE (.+)$/gm)].map(([, type]) => type);
    expect(families(page.text)).toEqual(families(app.text));
    for (const name of ['cats_total', 'cat_seconds_sum', 'cat_bytes_count', 'cat_average']) {
      expect([name, page.values(name)]).toEqual([name, app.values(name)]);
    }
    expect(page.values('cats_total')).toHaveLength(1);
  });

  it('answers while clients flood the app', async () => {
    const load = new Load(cluster.url, '/wait/0', { clients: 32, keepAlive: true });
    await load.serves(100);
    for (let i = 0; i < 5; i += 1) {
      expect(await probe(admin)).toMatchObject({ live: 200, ready: 200 });
      expect((await scrapeAll(admin)).values('nestjs_cluster_worker_up')).toEqual([1, 1]);
    }
    await load.serves(1);
    expect((await load.stop()).ok).toBeGreaterThan(100);
  });

  it('leaves heartbeats and requests alone while clients flood it', async () => {
    const before = await scrape(admin);
    const uptime = 'nestjs_cluster_primary_uptime_seconds';
    const load = new Load(admin, '/metrics', { clients: 16, keepAlive: true });
    const health = new Load(admin, '/health', { clients: 8, keepAlive: true });
    await Promise.all([load.serves(50), health.serves(50)]);

    // Some rounds of heartbeats long, and one look at least: the scrape itself may take as long.
    const began = (await scrape(admin)).sum(uptime);
    const ages: number[] = [];
    do {
      expect((await request(cluster.url, '/hello')).outcome).toBe('ok');
      const { workers } = (await getJson<HealthBody>(cluster.url, '/health')).body.details.cluster;
      ages.push(...workers.map(({ heartbeatAgeMs }) => heartbeatAgeMs!));
    } while ((await scrape(admin)).sum(uptime) < began + 1.5);
    // Some that are late are a busy machine's; most of them are not.
    expect(ages.toSorted((a, b) => a - b)[Math.floor(ages.length / 2)]).toBeLessThan(2_000);

    await Promise.all([load.stop(), health.stop()]);
    expect([load.failures, health.failures]).toEqual([0, 0]);
    expect(cluster.all('worker-died')).toEqual([]);
    const after = await scrape(admin);
    const restarts = 'nestjs_cluster_worker_restarts_total';
    expect(after.sum(restarts)).toBe(before.sum(restarts));
  });

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

  it('tells of workers that all do not answer, and shows what they last sent', async () => {
    const before = await scrapeAll(admin);
    await stopped(cluster.workerPids, async () => {
      const unanswered = await eventually(
        'a 503 with its reason',
        () => probe(admin),
        ({ ready }) => ready === 503,
      );
      expect(unanswered).toEqual({
        live: 200,
        ready: 503,
        reason: '0 of 1 needed workers are ready and answer; 2 workers do not answer',
      });
      expect((await getJson<HealthBody>(admin, '/health')).status).toBe(503);

      let best = Infinity;
      const ages = [];
      // At best: a machine that is busy elsewhere delays some, not each.
      for (let i = 0; i < 3 || (best >= 1_000 && i < 15); i += 1) {
        const startedAt = performance.now();
        const page = await anyPage(admin);
        if (!hasPrimary(page)) continue;
        best = Math.min(best, performance.now() - startedAt);
        expect(page.values('nestjs_cluster_worker_up')).toEqual([0, 0]);
        expect(page.sum('cats_total')).toBe(before.sum('cats_total'));
        ages.push(page.sum('nestjs_cluster_worker_snapshot_age_seconds', SILENT));
      }
      expect(best).toBeLessThan(1_000);
      expect(ages[0]).toBeGreaterThan(1);
      expect(ages[1]).toBeGreaterThan(ages[0]!);
      expect(ages[2]).toBeGreaterThan(ages[1]!);
    });

    expect((await scrapeAll(admin)).values('nestjs_cluster_worker_up')).toEqual([1, 1]);
    expect(await probe(admin)).toMatchObject({ ready: 200 });
    expect(cluster.all('worker-died')).toEqual([]);
  });

  it('counts the connections that wait for a worker', async () => {
    const { hostname, port } = new URL(cluster.url);
    const waiting = async () => {
      const page = await anyPage(admin);
      return page.values('nestjs_cluster_accept_backlog', { socket: cluster.url });
    };
    expect(await waiting()).toEqual([0]);
    await stopped(cluster.workerPids, async () => {
      const clients = Array.from({ length: 50 }, () => net.connect(Number(port), hostname));
      onTestFinished(() => clients.forEach((client) => client.destroy()));
      await Promise.all(clients.map((client) => once(client, 'connect')));

      expect(await waiting()).toEqual([50]);
      const { body } = await getJson<HealthBody>(admin, '/health');
      expect(body.details.cluster).toMatchObject({ acceptBacklog: 50 });
    });
  });

  it('answers again when the primary was stopped and goes on', async () => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    expect((await request(admin, '/health/live', { agent })).status).toBe(200);
    await stopped([cluster.pid], async () => {
      const asked = await request(admin, '/health/live', { timeoutMs: 1_500 });
      expect(asked.outcome).toBe('timeout');
    });

    await eventually(
      'the cluster as it was',
      () => probe(admin),
      ({ live, ready }) => live === 200 && ready === 200,
    );
    expect((await request(admin, '/metrics', { agent })).status).toBe(200);
    expect((await scrapeAll(admin)).values('nestjs_cluster_worker_up')).toEqual([1, 1]);
    expect(cluster.all('worker-died')).toEqual([]);
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
      reason: '0 of 1 needed workers are ready',
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
      reason: '0 of 1 needed workers are ready',
    });
    const page = await scrape(admin);
    expect(page.sum('nestjs_cluster_workers', { state: 'starting' })).toBe(2);
    expect(page.values('nestjs_cluster_worker_up')).toEqual([0, 0]);
    cluster.kill('SIGTERM');
    expect((await cluster.exited()).signal).toBeNull();
    expect(cluster.survivors()).toEqual([]);
  });

  it('wants as many workers ready as forRoot() says', async () => {
    const cluster = await ClusterProcess.start({
      options: { admin: { port: 0 }, hangTimeoutMs: PATIENT },
      env: { TEST_MODULE_OPTIONS: JSON.stringify({ health: { minReady: 'all' } }) },
    });
    const admin = adminUrlOf(cluster);
    await eventually(
      'readiness',
      () => probe(admin),
      ({ ready }) => ready === 200,
    );

    // The other one may be late for a moment, on a busy machine.
    const reason = '1 of 2 needed workers are ready and answer; 1 worker does not answer';
    await stopped([cluster.workerPids[1]!], async () => {
      await eventually(
        'a 503 for it alone',
        () => probe(admin),
        (answer) => answer.ready === 503 && answer.reason === reason,
      );
    });
  });

  it('is named in the first line of the log', async () => {
    const host = hasIPv6 ? '::1' : '127.0.0.1';
    const cluster = new ClusterProcess({
      options: { workers: 1, admin: { port: 0, host } },
      env: { CLUSTER_LOG_FORMAT: 'text' },
    });
    const line = () => /listening on .+\(.*, admin: (http:\S+)\)$/m.exec(cluster.output);
    await cluster.until('where it listens', () => line() !== null);
    const url = line()![1]!;

    expect(new URL(url).hostname).toBe(hasIPv6 ? '[::1]' : host);
    expect((await request(url, '/health/live')).status).toBe(200);
  });

  it('is not there with workers: 0, which is told', async () => {
    const port = await freePorts(1);
    const cluster = await ClusterProcess.start({ options: { workers: 0, admin: { port } } });

    expect(cluster.all('warning').map(({ message }) => message)).toEqual([
      'there is no admin listener with workers: 0, since there is no primary; ask the app',
    ]);
    expect(cluster.all('listening')).toMatchObject([{ adminUrl: null }]);
    expect((await request(`http://127.0.0.1:${port}`, '/health/live')).outcome).toBe('refused');
    expect((await request(cluster.url, '/health/live')).status).toBe(200);
  });
});

describe('an admin listener that cannot be', () => {
  afterEach(stopAll);

  it('on a port that is taken ends the program with 69 before anything is forked', async () => {
    const server = net.createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const { port } = server.address() as net.AddressInfo;
    const cluster = new ClusterProcess({
      options: { admin: { port } },
      env: { CLUSTER_LOG_FORMAT: 'text' },
      execArgv: ANNOUNCE_PROCESSES,
    });

    expect((await cluster.exited()).code).toBe(69);

    expect(startedProcesses(cluster)).toEqual([cluster.pid]);
    const [, ...lines] = cluster.output.trimEnd().split('\n');
    expect(lines).toEqual([expect.stringContaining(`cannot listen on 127.0.0.1:${port}`)]);
    expect(lines[0]).toContain('already in use (EADDRINUSE)');
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
    const admin = adminUrlOf(cluster);
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

describeWith(['ip'], 'the admin listener without a token', () => {
  afterEach(stopAll);

  it('is open to other machines where that is said, ', async () => {
    const network = await NetworkNamespace.create();
    onTestFinished(() => network.remove());
    const cluster = await ClusterProcess.start({
      options: { workers: 1, admin: { port: 0, host: '0.0.0.0', token: false } },
      within: network.within,
    });
    const { port } = new URL(adminUrlOf(cluster));
    const status = await network.output(NODE, [
      '-e',
      `require('http').get({ port: ${port}, path: '/metrics' }, ({ statusCode }) => { console.log(statusCode); process.exit(); })`,
    ]);
    expect(status).toBe('200\n');
  });
});
