import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { adminUrlOf } from '../support/admin.js';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { fallen, readCounters } from '../chaos/scraper.mjs';
import { request } from '../support/http-client.js';
import { Http2Client } from '../support/http2-client.js';
import { MetricsPage } from '../support/metrics-page.js';
import { describeOnce, IS_FIRST_RUN } from '../support/once.js';
import { RawClient } from '../support/raw-client.js';
import { anyPage, hasPrimary, scrape, scrapeAll } from '../support/scrape.js';
import { WebSocketClient } from '../support/web-socket-client.js';

const DURATION = 'http_request_duration_seconds';
const SIZE = 'http_response_size_bytes';
const UPTIME = 'nestjs_cluster_worker_uptime_seconds';
const ABORTED = 'http_requests_aborted_total';

/** Asks until every worker has answered `GET /count`. @returns how often. */
async function countInEveryWorker(cluster: ClusterProcess, workers: number): Promise<number> {
  const slots = new Set<number>();
  let asked = 0;
  while (slots.size < workers) {
    const { body } = await request(cluster.url, '/count');
    slots.add((JSON.parse(body) as { slot: number }).slot);
    asked += 1;
  }
  return asked;
}

/** Waits until the page satisfies `holds`. */
function pageWith(
  what: string,
  get: () => Promise<MetricsPage>,
  holds: (page: MetricsPage) => boolean,
): Promise<MetricsPage> {
  return eventually(what, get, holds);
}

const ADAPTERS = IS_FIRST_RUN ? (['express', 'fastify', 'node'] as const) : (['fastify'] as const);

describe.each(ADAPTERS)('what is measured of requests on %s', (adapter) => {
  let cluster: ClusterProcess;

  beforeAll(async () => {
    cluster = await ClusterProcess.start({
      options: { workers: 1 },
      env: { ...behaviour('streams#measured'), TEST_ADAPTER: adapter },
    });
  });

  afterAll(stopAll);

  it('has the size of each response of a connection, with its head', async () => {
    const client = await RawClient.open(cluster.url);
    onTestFinished(() => client.destroy());
    const BODIES = [10, 5_000, 50_000, 2_000_000];
    /** Bytes of bodies that have arrived; no head has so many of that letter in a row. */
    const received = () => (client.text.match(/x{10,}/g) ?? []).join('').length;
    let sent = 0;
    for (const bytes of BODIES) {
      client.get(`/size/${bytes}`);
      sent += bytes;
      await eventually('the whole body', received, (length) => length === sent);
    }
    // And three that were sent at once.
    client.get('/size/11', '/size/12', '/size/13');
    await eventually('their bodies', received, (length) => length === sent + 11 + 12 + 13);

    const page = await scrape(cluster.url);

    const answers = { route: '/size/:bytes', method: 'GET', status_code: '200' };
    expect(page.values(`${SIZE}_count`, answers)).toEqual([7]);
    expect(page.values(`${SIZE}_sum`, answers)).toEqual([Buffer.byteLength(client.text)]);
    const upTo = (le: string) => page.values(`${SIZE}_bucket`, { ...answers, le });
    expect(upTo('100')).toEqual([0]);
    expect(upTo('1000')).toEqual([4]);
    expect(upTo('10000')).toEqual([5]);
    expect(upTo('100000')).toEqual([6]);
    expect(upTo('1000000')).toEqual([6]);
    expect(upTo('10000000')).toEqual([7]);
    expect(upTo('+Inf')).toEqual([7]);
  });

  it('has those whose clients left before they were answered, by route', async () => {
    expect((await request(cluster.url, '/wait/60000', { timeoutMs: 300 })).outcome).toBe('timeout');
    const begun = await RawClient.open(cluster.url);
    begun.get('/endless/1');
    await begun.until(/begun/);
    begun.destroy();
    expect((await request(cluster.url, '/wait/0')).outcome).toBe('ok');

    const page = await pageWith(
      'both of them',
      () => scrape(cluster.url),
      (metrics) => metrics.sum(ABORTED) >= 2,
    );

    expect(page.values(ABORTED, { method: 'GET', route: '/wait/:ms' })).toEqual([1]);
    expect(page.values(ABORTED, { method: 'GET', route: '/endless/:id' })).toEqual([1]);
    expect(page.sum(ABORTED)).toBe(2);
    // Requests that were answered are counted in the histogram of durations.
    expect(page.sum(`${DURATION}_count`, { route: '/wait/:ms' })).toBe(1);
    expect(page.sum(`${DURATION}_count`, { route: '/endless/:id' })).toBe(0);
  });

  it('has no streams of events, neither when they end nor when their clients leave', async () => {
    const before = await scrape(cluster.url);
    for (const path of ['/sse', '/raw-sse']) {
      const client = await RawClient.open(cluster.url);
      client.get(path);
      await client.until(/data: /);
      client.destroy();
    }
    expect((await request(cluster.url, '/sse-that-ends')).body).toContain('data: the only one');
    const page = await pageWith(
      'that they are over',
      () => scrape(cluster.url),
      (metrics) => metrics.sum('nestjs_cluster_worker_requests_in_flight') <= 1,
    );
    for (const route of ['/sse', '/raw-sse', '/sse-that-ends']) {
      expect(page.values(`${DURATION}_count`, { route })).toEqual([]);
      expect(page.values(`${SIZE}_count`, { route })).toEqual([]);
    }
    expect(page.sum(ABORTED)).toBe(before.sum(ABORTED));
  });

  it('has no WebSockets, however they end', async () => {
    const before = await scrape(cluster.url);
    for (const end of ['close', 'terminate'] as const) {
      const socket = await WebSocketClient.open(cluster.url);
      const answer = socket.next();
      socket.send(JSON.stringify({ event: 'echo', data: 'hello' }));
      expect(await answer).toContain('hello');
      socket[end]();
      await socket.closed;
    }
    await eventually(
      'that both are closed',
      () => request(cluster.url, '/sockets'),
      ({ body }) => (JSON.parse(body) as { open: number }).open === 0,
    );

    const page = await scrape(cluster.url);
    const others = (metrics: MetricsPage) =>
      metrics.sum(`${DURATION}_count`) -
      metrics.sum(`${DURATION}_count`, { route: '/sockets' }) -
      metrics.sum(`${DURATION}_count`, { route: '/metrics' });
    expect(others(page)).toBe(others(before));
    expect(page.sum(ABORTED)).toBe(before.sum(ABORTED));
  });
});

describe('what is measured of requests', () => {
  afterEach(stopAll);

  it('over HTTP/2 is their duration, and those whose clients left, but no size', async () => {
    const cluster = await ClusterProcess.start({
      options: { workers: 1 },
      env: { TEST_SERVER: 'http2' },
    });
    const client = await Http2Client.open(cluster.url);
    await client.get('/hello');
    await client.get('/hello');
    await client.get('/nothing/here');
    const leaving = await Http2Client.open(cluster.url);
    void leaving.get('/wait/60000');
    await cluster.until('the request', () => cluster.output.includes('waiting 60000'));
    leaving.destroy();

    const page = await pageWith(
      'the one that left',
      async () => new MetricsPage((await client.get('/metrics')).body),
      (metrics) => metrics.sum(ABORTED) > 0,
    );

    const answers = { method: 'GET', status_code: '200' };
    expect(page.values(`${DURATION}_count`, { ...answers, route: '/hello' })).toEqual([2]);
    expect(page.values(`${DURATION}_count`, { route: 'unmatched' })).toEqual([1]);
    expect(page.values(`${DURATION}_count`, { route: '/wait/:ms' })).toEqual([]);
    expect(page.values(ABORTED, { method: 'GET', route: '/wait/:ms' })).toEqual([1]);
    expect(page.sum(ABORTED)).toBe(1);
    expect(page.values(`${SIZE}_count`)).toEqual([]);
  });

  it('tells clients that left from those that a drain has cut off', async () => {
    const cluster = await ClusterProcess.start({
      options: { workers: 1, shutdown: { drainTimeoutMs: 300 } },
    });
    const [drained] = cluster.workerPids;
    await request(cluster.url, '/wait/50000', { timeoutMs: 300 });
    const cut = request(cluster.url, '/wait/60000', { timeoutMs: 30_000 });
    await pageWith(
      'a request in flight, and one that left',
      () => scrape(cluster.url),
      (page) =>
        page.sum(ABORTED) === 1 && page.sum('nestjs_cluster_worker_requests_in_flight') === 2,
    );

    process.kill(drained!, 'SIGTERM');
    expect((await cut).outcome).toBe('reset');
    await cluster.event('worker-stopped', ({ pid }) => pid === drained);
    await cluster.until('another worker', () => cluster.workerPids.length === 1);

    const page = await scrape(cluster.url);
    expect(page.values('nestjs_cluster_worker_aborted_requests_total')).toEqual([1]);
    expect(page.values(ABORTED, { route: '/wait/:ms' })).toEqual([1]);
    expect(page.sum(ABORTED)).toBe(1);
  });
});

describeOnce('metrics of each worker (perWorker)', () => {
  let cluster: ClusterProcess;
  let admin: string;

  beforeAll(async () => {
    cluster = await ClusterProcess.start({
      options: { admin: { port: 0 } },
      env: {
        ...behaviour('metrics#workerLabel'),
        TEST_MODULE_OPTIONS: JSON.stringify({ metrics: { perWorker: true } }),
      },
    });
    admin = adminUrlOf(cluster);
  });

  afterAll(stopAll);

  it('know the cluster without its primary, and that they know it no better', async () => {
    await pageWith(
      'two heartbeats of each worker: with one it hears of the others',
      () => scrape(admin),
      (page) => page.values(UPTIME).length === 2 && Math.min(...page.values(UPTIME)) > 3,
    );
    cluster.kill('SIGSTOP');
    try {
      // At best: a machine that is busy elsewhere delays some, not each.
      let best = Infinity;
      for (let i = 0; i < 3 || (best >= 1_500 && i < 15); i += 1) {
        const startedAt = performance.now();
        const page = await anyPage(cluster.url);
        best = Math.min(best, performance.now() - startedAt);
        expect(page.values('nestjs_cluster_worker_resident_memory_bytes').length).toBeGreaterThan(
          0,
        );
        expect(page.values('nestjs_cluster_workers_desired')).toEqual([2]);
        expect(page.sum('nestjs_cluster_snapshot_age_seconds')).toBeGreaterThan(0);
        // A gap is harmless, a fall is not.
        expect([...readCounters(page.text).keys()]).toEqual([]);
        expect(page.text).not.toMatch(/^# TYPE \S+ (counter|histogram|summary)$/m);
      }
      expect(best).toBeLessThan(1_500);
    } finally {
      cluster.kill('SIGCONT');
    }
    const page = await pageWith(
      'the primary again',
      () => scrape(cluster.url),
      (metrics) => metrics.sum('nestjs_cluster_snapshot_age_seconds') === 0,
    );
    expect(page.values('nestjs_cluster_worker_requests_total')).toHaveLength(2);
  });

  it('have its slot as a label, and keep a label of that name of the app', async () => {
    const asked = await countInEveryWorker(cluster, 2);

    const page = await scrapeAll(cluster.url);

    expect(page.values('hive_total', { exported_worker: 'bee' })).toHaveLength(2);
    expect(page.labelValues('hive_total', 'worker').toSorted()).toEqual(['0', '1']);
    expect(page.sum('hive_total')).toBe(asked);
    for (const name of [`${DURATION}_count`, `${SIZE}_count`, 'process_cpu_seconds_total']) {
      expect([name, page.labelValues(name, 'worker').toSorted()]).toEqual([name, ['0', '1']]);
    }
    expect(page.sum(`${DURATION}_count`, { route: '/count' })).toBe(asked);
    const shown = await scrapeAll(admin);
    for (const worker of ['0', '1']) {
      expect(shown.values('hive_total', { worker })).toEqual(page.values('hive_total', { worker }));
    }
  });

  it('never fall when a worker of the slot is killed', async () => {
    const fell: object[] = [];
    let before = readCounters((await scrape(admin)).text);
    const KILLS = 3;
    for (let i = 0; i < KILLS; i += 1) {
      await countInEveryWorker(cluster, 2);
      const counted = readCounters((await scrape(admin)).text);
      fell.push(...fallen(before, counted));
      const victim = cluster.workerPids[0]!;
      process.kill(victim, 'SIGKILL');
      await cluster.event('worker-died', ({ pid }) => pid === victim);
      const after = readCounters((await scrape(admin)).text);
      fell.push(...fallen(counted, after));
      await cluster.until('two workers again', () => cluster.workerPids.length === 2);
      before = readCounters((await scrape(cluster.url)).text);
      fell.push(...fallen(after, before));
    }
    expect(fell.slice(0, 10)).toEqual([]);
  });
});

describeOnce('parallel scrapes of several workers, and of the admin listener', () => {
  const WORKERS = 4;
  let cluster: ClusterProcess;
  let admin: string;

  beforeAll(async () => {
    cluster = await ClusterProcess.start({
      options: { workers: WORKERS, admin: { port: 0 } },
      env: behaviour('metrics#slowCollect'),
    });
    admin = adminUrlOf(cluster);
  });

  afterAll(stopAll);

  it('are all complete, and share few collections', async () => {
    const before = (await scrapeAll(admin)).sum('collects_total');

    const SCRAPES = 50;
    const urls = Array.from({ length: SCRAPES }, (_, i) => (i % 2 === 0 ? cluster.url : admin));
    const pages = await Promise.all(urls.map((url) => scrape(url)));

    for (const page of pages) {
      expect(page.values('nestjs_cluster_worker_up')).toHaveLength(WORKERS);
      expect(page.values('slow_value')).toEqual([WORKERS]);
    }
    const collects = (await scrape(admin)).sum('collects_total') - before;
    // Were each collected for itself, each worker would be asked 50 times.
    expect(collects).toBeLessThan((SCRAPES * WORKERS) / 2);
  });

  it('are complete and never fall while workers that merge for others are killed', async () => {
    const fell: object[] = [];
    const answered = { workers: 0, admin: 0 };
    let stopping = false;
    const scrapeOnAndOn = async (who: keyof typeof answered): Promise<void> => {
      const url = who === 'admin' ? admin : cluster.url;
      let before = new Map<string, number>();
      while (!stopping) {
        const { outcome, body } = await request(url, '/metrics');
        // A request to the worker that was killed gets no answer.
        if (outcome === 'reset' && who === 'workers') continue;
        expect(outcome).toBe('ok');
        const page = new MetricsPage(body);
        if (!hasPrimary(page)) continue;
        expect(page.values('nestjs_cluster_worker_up')).toHaveLength(WORKERS);
        const after = readCounters(page.text);
        fell.push(...fallen(before, after));
        before = after;
        answered[who] += 1;
      }
    };
    const clients = [
      ...Array.from({ length: 8 }, () => scrapeOnAndOn('workers')),
      ...Array.from({ length: 2 }, () => scrapeOnAndOn('admin')),
    ];

    const KILLS = 4;
    for (let i = 0; i < KILLS; i += 1) {
      const so = answered.workers;
      await eventually('further answers', () => answered.workers >= so + 4);
      const pids = cluster.workerPids;
      const victim = pids[(i * 3) % pids.length]!;
      process.kill(victim, 'SIGKILL');
      await cluster.event('worker-died', ({ pid }) => pid === victim);
    }
    stopping = true;
    await Promise.all(clients);

    expect(fell.slice(0, 10)).toEqual([]);
    expect(answered.workers).toBeGreaterThan(4 * KILLS);
    expect(answered.admin).toBeGreaterThan(KILLS);
    const restarts = 'nestjs_cluster_worker_restarts_total';
    expect((await scrape(admin)).sum(restarts)).toBe(KILLS);
  });
});
