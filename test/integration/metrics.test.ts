import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { falls, growingSeries } from '../support/growing-series.js';
import { clusterReport } from '../support/health.js';
import { getJson, Load, request } from '../support/http-client.js';
import { MetricsPage } from '../support/metrics-page.js';

afterEach(stopAll);

const DURATION = 'http_request_duration_seconds';

const RESTARTS = { backoffMs: 1, maxBackoffMs: 1, maxFailures: 1_000 } as const;

async function scrape(cluster: ClusterProcess): Promise<MetricsPage> {
  const { status, body } = await request(cluster.url, '/metrics');
  expect([status, status === 200 ? '' : body]).toEqual([200, '']);
  return new MetricsPage(body);
}

/** Asks until every worker has answered at least once. */
async function askEveryWorker(cluster: ClusterProcess, path: string): Promise<number> {
  const slots = new Set<number>();
  let asked = 0;
  while (slots.size < cluster.workerPids.length) {
    slots.add((await getJson<{ slot: number }>(cluster.url, path)).body.slot);
    asked += 1;
  }
  return asked;
}

/** CPU time a process has used, in ms. */
function cpuTimeMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  const MS_PER_TICK = 10;
  return (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK;
}

describe('counters', () => {
  it('never fall, however often workers are killed (X3)', async () => {
    const cluster = await ClusterProcess.start({
      options: { restart: RESTARTS },
      env: behaviour('app-metrics'),
    });
    const load = new Load(cluster.url, '/count', { clients: 2 });
    await eventually(
      'some requests',
      () => load.outcomes.ok,
      (ok) => ok >= 20,
    );

    const fallen: string[] = [];
    let before = growingSeries(await scrape(cluster));
    let scrapes = 0;
    const compare = async (): Promise<void> => {
      const { outcome, body } = await request(cluster.url, '/metrics');
      if (outcome !== 'ok') return; // asked the worker that was killed
      const after = growingSeries(new MetricsPage(body));
      fallen.push(...falls(before, after));
      before = after;
      scrapes += 1;
    };
    // More often than the primary keeps bodies of dead workers apart, so that they are folded.
    const KILLS = 12;
    for (let i = 0; i < KILLS; i++) {
      const pids = cluster.workerPids;
      const victim = pids[i % pids.length]!;
      await compare();
      process.kill(victim, 'SIGKILL');
      await compare();
      await cluster.event('worker-died', ({ pid }) => pid === victim);
      await compare();
      await cluster.until('two workers again', () => cluster.workerPids.length === 2);
      await compare();
    }
    const counted = (await load.stop()).ok;
    await compare();

    // A few of them tell enough.
    expect(fallen.slice(0, 10)).toEqual([]);
    expect(scrapes).toBeGreaterThan(KILLS);
    const page = await scrape(cluster);
    expect(page.sum('nestjs_cluster_worker_restarts_total', { cause: 'killed' })).toBe(KILLS);
    // What a worker had not sent when it was killed is lost; the rest is there.
    expect(page.sum('cats_total')).toBeGreaterThan(0);
    expect(page.sum('cats_total')).toBeLessThanOrEqual(counted + 2 * KILLS);
    expect(page.sum(`${DURATION}_count`, { route: '/count' })).toBe(page.sum('cats_total'));
  });

  it('keep what a worker had counted that was drained', async () => {
    const cluster = await ClusterProcess.start({ env: behaviour('app-metrics') });
    const asked = await askEveryWorker(cluster, '/count');
    const [drained] = cluster.workerPids;

    process.kill(drained!, 'SIGTERM');
    await cluster.event('worker-stopped', ({ pid }) => pid === drained);
    await cluster.until('two workers again', () => cluster.workerPids.length === 2);

    const page = await scrape(cluster);
    expect(page.sum('cats_total')).toBe(asked);
    expect(page.sum(`${DURATION}_count`, { route: '/count' })).toBe(asked);
    expect(page.sum('nestjs_cluster_worker_restarts_total')).toBe(0);
  });
});

describe('metrics that nobody scrapes', () => {
  it('outlive their worker all the same, but for those of its last seconds', async () => {
    const cluster = await ClusterProcess.start({
      options: { restart: RESTARTS, heartbeat: { intervalMs: 200, timeoutMs: 60_000 } },
      env: behaviour('app-metrics'),
    });
    const asked = await askEveryWorker(cluster, '/count');
    const pids = cluster.workerPids;

    // They are sent every 10 s.
    await eventually(
      'both workers older than that',
      () => clusterReport(cluster.url),
      ({ workers }) => workers.every(({ uptimeSeconds }) => uptimeSeconds > 13),
    );
    for (const pid of pids) process.kill(pid, 'SIGKILL');
    await cluster.until(
      'two other workers',
      () =>
        cluster.workerPids.length === 2 && cluster.workerPids.every((pid) => !pids.includes(pid)),
    );

    expect((await scrape(cluster)).sum('cats_total')).toBe(asked);
  });
});

describe('parallel scrapes', () => {
  it('are all answered, share one collection, and cost the primary little (X4)', async () => {
    const cluster = await ClusterProcess.start({ env: behaviour('slow-collect') });
    const before = (await scrape(cluster)).sum('collects_total');
    const cpuBefore = cpuTimeMs(cluster.pid);

    const SCRAPES = 50;
    const answers = await Promise.all(
      Array.from({ length: SCRAPES }, () => request(cluster.url, '/metrics')),
    );

    const cpuMs = cpuTimeMs(cluster.pid) - cpuBefore;
    expect(answers.map(({ outcome }) => outcome)).toEqual(answers.map(() => 'ok'));
    const collects = (await scrape(cluster)).sum('collects_total') - before;
    // Were each collected for itself, each worker would be asked 50 times.
    expect(collects).toBeLessThan(SCRAPES / 2);
    // Of its own time, not of the clock's: the machine may be busy.
    expect(cpuMs).toBeLessThan(300);
  });
});

describe.each(['express', 'fastify'] as const)('the request histogram on %s', (adapter) => {
  const start = (name: string, env: Record<string, string> = {}) =>
    ClusterProcess.start({
      options: { workers: 1 },
      env: { ...behaviour(name), TEST_ADAPTER: adapter, ...env },
    });

  it('has the route template, the method and the status of each response', async () => {
    const cluster = await start('statuses');
    const send = (method: string, path: string) => request(cluster.url, path, { method });
    await send('GET', '/wait/1');
    await send('GET', '/wait/2?a=b');
    await send('GET', '/bad/1');
    await send('GET', '/boom/1');
    await send('POST', '/cats/1');
    await send('GET', '/nothing/here');
    await send('DELETE', '/wait/1');

    const page = await scrape(cluster);

    const count = (route: string, method: string, status: number) =>
      page.values(`${DURATION}_count`, { route, method, status_code: String(status) });
    expect(count('/wait/:ms', 'GET', 200)).toEqual([2]);
    expect(count('/bad/:id', 'GET', 400)).toEqual([1]);
    expect(count('/boom/:id', 'GET', 500)).toEqual([1]);
    expect(count('/cats/:id', 'POST', 201)).toEqual([1]);
    expect(count('unmatched', 'GET', 404)).toEqual([1]);
    expect(count('unmatched', 'DELETE', 404)).toEqual([1]);
    expect(page.sum(`${DURATION}_count`)).toBe(7);
    const waited = { route: '/wait/:ms', method: 'GET', status_code: '200' };
    expect(page.sum(`${DURATION}_bucket`, { ...waited, le: '+Inf' })).toBe(2);
    const sum = page.sum(`${DURATION}_sum`, waited);
    expect(sum).toBeGreaterThan(0.001);
    expect(sum).toBeLessThan(10);
  });

  it('has the routes of the endpoints themselves', async () => {
    const cluster = await start('statuses');
    for (const path of ['/health', '/health/live', '/health/ready', '/metrics']) {
      await request(cluster.url, path);
    }

    const page = await scrape(cluster);

    for (const route of ['/health', '/health/live', '/health/ready', '/metrics']) {
      expect([route, page.sum(`${DURATION}_count`, { route, status_code: '200' })]).toEqual([
        route,
        1,
      ]);
    }
    expect(page.sum(`${DURATION}_count`, { route: 'unmatched' })).toBe(0);
  });

  it.each<{ features: string; path: string; headers: Record<string, string>; route: string }>([
    { features: 'prefix', path: '/api/probe/7', headers: {}, route: '/api/probe/:id' },
    { features: 'uri', path: '/v1/probe/7', headers: {}, route: '/v1/probe/:id' },
    { features: 'prefix,uri', path: '/api/v1/probe/7', headers: {}, route: '/api/v1/probe/:id' },
    { features: 'header', path: '/probe/7', headers: { 'X-Version': '1' }, route: '/probe/:id' },
  ])('has the whole template with $features', async ({ features, path, headers, route }) => {
    const cluster = await start('global-features', { TEST_FEATURES: features });

    expect((await request(cluster.url, path, { headers })).outcome).toBe('ok');

    const page = await scrape(cluster);
    expect(page.labelValues(`${DURATION}_count`, 'route')).toContain(route);
    expect(page.values(`${DURATION}_count`, { route, status_code: '200' })).toEqual([1]);
  });

  it('has one series for all paths that no route takes', async () => {
    const cluster = await start('statuses');
    const PATHS = 2_000;
    let asked = 0;
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        while (asked < PATHS) await request(cluster.url, `/${(asked += 1)}/${Math.random()}`);
      }),
    );

    const page = await scrape(cluster);

    expect(page.labelValues(`${DURATION}_count`, 'route')).toEqual(['unmatched']);
    expect(page.values(`${DURATION}_count`)).toHaveLength(1);
    expect(page.sum(`${DURATION}_count`)).toBeGreaterThanOrEqual(PATHS);
  });

  it('has one label for all methods that are not usual', async () => {
    const cluster = await start('statuses');
    for (const method of ['PROPFIND', 'LOCK', 'REPORT', 'PURGE']) {
      expect((await request(cluster.url, '/hello', { method })).outcome).toBe('bad-status');
    }

    const page = await scrape(cluster);

    expect(page.labelValues(`${DURATION}_count`, 'method')).toEqual(['OTHER']);
    expect(page.sum(`${DURATION}_count`)).toBe(4);
  });
});

describe("the app's own metrics", () => {
  it('are merged over the workers as their type and aggregator say', async () => {
    const cluster = await ClusterProcess.start({ env: behaviour('app-metrics') });
    const asked = await askEveryWorker(cluster, '/count');

    const page = await scrape(cluster);

    expect(page.values('cats_total')).toEqual([asked]);
    expect(page.text).toContain(
      String.raw`cats_total{colour="black \"and\"\nwhite\\"} ${asked}` + '\n',
    );
    expect(page.values('cat_seconds_count')).toEqual([asked]);
    expect(page.values('cat_seconds_sum')).toEqual([5 * asked]);
    expect(page.values('cat_seconds_bucket', { le: '1' })).toEqual([0]);
    expect(page.values('cat_seconds_bucket', { le: '10' })).toEqual([asked]);
    expect(page.values('cat_seconds_bucket', { le: '+Inf' })).toEqual([asked]);
    expect(page.values('cat_bytes_count')).toEqual([asked]);
    expect(page.values('cat_bytes_sum')).toEqual([100 * asked]);
    expect(page.values('cat_bytes', { quantile: '0.5' })).toEqual([100]);
    expect(page.values('cat_added')).toEqual([1 + 2]);
    expect(page.values('cat_max')).toEqual([2]);
    expect(page.values('cat_average')).toEqual([1.5]);
    expect(page.values('cat_omitted')).toEqual([]);
    expect(page.text).toContain('# TYPE cats_total counter\n');
    expect(page.text).toContain('# HELP cats_total Cats\n');
  });

  it('are there where they are 0 (X7)', async () => {
    const cluster = await ClusterProcess.start({ env: behaviour('app-metrics') });

    expect((await scrape(cluster)).values('cat_zero')).toEqual([0]);
  });

  it('of names that this package has too are shown, with a warning that names the remedy', async () => {
    const cluster = await ClusterProcess.start({ env: behaviour('default-metrics') });

    const page = await scrape(cluster);
    await cluster.until('a warning of each worker', () => warnings().length === 2, 5_000);

    expect(warnings()[0]).toContain('process_cpu_user_seconds_total');
    expect(page.values('process_cpu_user_seconds_total')).toHaveLength(1);
    expect(page.text.match(/^# TYPE process_cpu_user_seconds_total /gm)).toHaveLength(1);
    // Once, not at each scrape.
    await scrape(cluster);
    expect(warnings()).toHaveLength(2);

    function warnings(): string[] {
      return cluster.output.split('\n').filter((line) => line.includes('metrics.prefix'));
    }
  });

  it('of names that this package has too are told at start, before any scrape', async () => {
    const cluster = await ClusterProcess.start({ env: behaviour('default-metrics') });

    await cluster.until(
      'a warning that names the remedy',
      () => /process_cpu_user_seconds_total.*metrics\.prefix/.test(cluster.output),
      5_000,
    );
  });

  it('of names that the page of the cluster has do not break it', async () => {
    const cluster = await ClusterProcess.start({ env: behaviour('taken-name') });

    const page = await scrape(cluster);

    expect(page.text.match(/^# TYPE nestjs_cluster_workers /gm)).toHaveLength(1);
    await cluster.until('a warning that names the remedy', () =>
      /nestjs_cluster_workers.*metrics\.prefix/.test(cluster.output),
    );
  });

  it('whose collect() rejects end no worker', async () => {
    const cluster = await ClusterProcess.start({
      options: { heartbeat: { intervalMs: 100, timeoutMs: 10_000 } },
      env: behaviour('failing-collect'),
    });
    const pids = cluster.workerPids;

    await request(cluster.url, '/metrics');
    // Long enough for metrics to be sent of their own accord too.
    await eventually(
      'some heartbeats',
      () => clusterReport(cluster.url),
      ({ workers }) => workers.every(({ uptimeSeconds }) => uptimeSeconds > 2),
    );

    expect(cluster.all('worker-died')).toEqual([]);
    expect(cluster.workerPids).toEqual(pids);
    cluster.kill('SIGTERM');
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
    expect(cluster.all('worker-stopped').map(({ problem }) => problem)).toEqual([null, null]);
  });

  it('whose collect() rejects leave the other metrics on the page', async () => {
    const cluster = await ClusterProcess.start({
      options: { heartbeat: { intervalMs: 60_000, timeoutMs: 120_000 } },
      env: behaviour('failing-collect'),
    });

    const page = await scrape(cluster);

    expect(page.values('nestjs_cluster_worker_up')).toEqual([1, 1]);
    expect(page.values('process_cpu_user_seconds_total')).toHaveLength(1);
  });

  it('whose collect() hangs do not hold up the page', async () => {
    const cluster = await ClusterProcess.start({ env: behaviour('hanging-collect') });

    const took = [];
    for (let i = 0; i < 3; i++) {
      const startedAt = performance.now();
      expect((await scrape(cluster)).values('nestjs_cluster_worker_up')).toEqual([1, 1]);
      took.push(performance.now() - startedAt);
    }

    expect(Math.min(...took)).toBeLessThan(1_500);
    expect(cluster.all('worker-died')).toEqual([]);
  });
});
