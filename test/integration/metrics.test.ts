import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, type StartOptions, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { fallen, readCounters } from '../chaos/scraper.mjs';
import { clusterReport } from '../support/health.js';
import { getJson, Load, request } from '../support/http-client.js';
import { MetricsPage } from '../support/metrics-page.js';
import { anyPage, hasPrimary, scrape as scrapeUrl, scrapeAll } from '../support/scrape.js';

const DURATION = 'http_request_duration_seconds';

/** For one test. */
async function started(options: StartOptions): Promise<ClusterProcess> {
  const cluster = await ClusterProcess.start(options);
  onTestFinished(() => cluster.destroy());
  return cluster;
}

const scrape = ({ url }: ClusterProcess) => scrapeUrl(url);
const scrapeBoth = ({ url }: ClusterProcess) => scrapeAll(url);

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

/** Metrics are sent every 10 s where nobody asks: by this age each worker has. */
const PUSHED_AFTER_SECONDS = 18;

const pushed = ({ url }: ClusterProcess) =>
  eventually(
    'workers older than it takes to send metrics of their own accord',
    () => clusterReport(url),
    ({ workers }) => workers.every(({ uptimeSeconds }) => uptimeSeconds > PUSHED_AFTER_SECONDS),
  );

/** They grow old while the other tests run. */
const aged: Record<'unscraped' | 'rejecting', ClusterProcess> = {} as never;
let askedOfUnscraped: number;

beforeAll(async () => {
  aged.unscraped = await ClusterProcess.start({
    options: { hangTimeoutMs: 60_000 },
    env: behaviour('metrics#ofEachType'),
  });
  askedOfUnscraped = await askEveryWorker(aged.unscraped, '/count');
  aged.rejecting = await ClusterProcess.start({
    options: { hangTimeoutMs: 60_000 },
    env: behaviour('metrics#failingCollect'),
  });
});

afterAll(stopAll);

describe('metrics whose collect() rejects', () => {
  it('leave the other metrics on the page', async () => {
    const page = await scrape(aged.rejecting);

    expect(page.values('nestjs_cluster_worker_up')).toEqual([1, 1]);
    expect(page.values('process_cpu_user_seconds_total')).toHaveLength(1);
  });
});

describe("the app's own metrics", () => {
  let cluster: ClusterProcess;

  beforeAll(async () => {
    cluster = await ClusterProcess.start({
      env: behaviour('metrics#ofEachType'),
    });
  });

  afterAll(() => cluster.destroy());

  it('are merged over the workers as their type and aggregator say', async () => {
    const asked = await askEveryWorker(cluster, '/count');

    const page = await scrapeBoth(cluster);

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
    expect(page.values('cat_added')).toEqual([1 + 2]);
    expect(page.values('cat_max')).toEqual([2]);
    expect(page.values('cat_average')).toEqual([1.5]);
    expect(page.values('cat_omitted')).toEqual([]);
    // Also where it is 0.
    expect(page.values('cat_zero')).toEqual([0]);
    expect(page.text).toContain('# TYPE cats_total counter\n');
    expect(page.text).toContain('# HELP cats_total Cats\n');
  });

  it('keep what a worker had counted that was drained', async () => {
    const counted = async () => {
      const page = await scrapeBoth(cluster);
      return [page.sum('cats_total'), page.sum(`${DURATION}_count`, { route: '/count' })];
    };
    const before = await counted();
    const asked = await askEveryWorker(cluster, '/count');
    const [drained] = cluster.workerPids;

    process.kill(drained!, 'SIGTERM');
    await cluster.event('worker-stopped', ({ pid }) => pid === drained);
    await cluster.until('two workers again', () => cluster.workerPids.length === 2);

    expect(await counted()).toEqual(before.map((count) => count + asked));
    expect((await scrape(cluster)).sum('nestjs_cluster_worker_restarts_total')).toBe(0);
  });

  it('never fall, however often workers are killed', async () => {
    const already = (await scrapeBoth(cluster)).sum('cats_total');
    const load = new Load(cluster.url, '/count', { clients: 2, pauseMs: 10 });
    await eventually(
      'some requests',
      () => load.outcomes.ok,
      (ok) => ok >= 20,
    );

    const fell: object[] = [];
    let before = readCounters((await scrape(cluster)).text);
    let scrapes = 0;
    const compare = async (): Promise<void> => {
      const { outcome, body } = await request(cluster.url, '/metrics');
      if (outcome !== 'ok') return; // asked the worker that was killed
      const page = new MetricsPage(body);
      if (!hasPrimary(page)) return;
      const after = readCounters(page.text);
      fell.push(...fallen(before, after));
      before = after;
      scrapes += 1;
    };
    const KILLS = 6;
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
    expect(fell.slice(0, 10)).toEqual([]);
    expect(scrapes).toBeGreaterThan(KILLS);
    const page = await scrapeBoth(cluster);
    expect(page.sum('nestjs_cluster_worker_restarts_total', { cause: 'killed' })).toBe(KILLS);
    // Counts that a worker had not sent when it was killed are lost; all others must be there.
    expect(page.sum('cats_total')).toBeGreaterThan(already);
    expect(page.sum('cats_total')).toBeLessThanOrEqual(already + counted + 2 * KILLS);
    expect(page.sum(`${DURATION}_count`, { route: '/count' })).toBe(page.sum('cats_total'));
  });
});

describe('parallel scrapes', () => {
  it('are all answered, share one collection, and cost the primary little', async () => {
    const cluster = await started({ env: behaviour('metrics#slowCollect') });
    const before = (await scrapeBoth(cluster)).sum('collects_total');
    const cpuBefore = cpuTimeMs(cluster.pid);

    const SCRAPES = 50;
    const answers = await Promise.all(
      Array.from({ length: SCRAPES }, () => request(cluster.url, '/metrics')),
    );

    const cpuMs = cpuTimeMs(cluster.pid) - cpuBefore;
    expect(answers.map(({ outcome }) => outcome)).toEqual(answers.map(() => 'ok'));
    const collects = (await scrape(cluster)).sum('collects_total') - before;
    // Without a shared collection, each worker would be asked 50 times.
    expect(collects).toBeLessThan(SCRAPES / 2);
    // CPU time of the primary, not time by the clock: the machine may be busy.
    expect(cpuMs).toBeLessThan(300);
  });
});

describe.each(['express', 'fastify'] as const)('the request histogram on %s', (adapter) => {
  let cluster: ClusterProcess;
  let before: MetricsPage;

  beforeAll(async () => {
    cluster = await ClusterProcess.start({
      options: { workers: 1 },
      env: { ...behaviour('streams#statuses'), TEST_ADAPTER: adapter },
    });
  });

  afterAll(() => cluster.destroy());

  beforeEach(async () => {
    before = await scrape(cluster);
  });

  /** With itself, and those before it for which the primary was late. */
  async function scrapeCounting(): Promise<{ page: MetricsPage; scraped: number }> {
    for (let scraped = 1; ; scraped++) {
      const page = await anyPage(cluster.url);
      if (hasPrimary(page)) return { page, scraped };
    }
  }

  /** Number of requests counted since `before`: in the running test, and the scrape before it. */
  const counted = (page: MetricsPage, labels: Record<string, string> = {}) =>
    page.sum(`${DURATION}_count`, labels) - before.sum(`${DURATION}_count`, labels);

  it('has the route template, the method and the status of each response', async () => {
    const send = (method: string, path: string) => request(cluster.url, path, { method });
    await send('GET', '/wait/1');
    await send('GET', '/wait/2?a=b');
    await send('GET', '/bad/1');
    await send('GET', '/boom/1');
    await send('POST', '/cats/1');
    await send('GET', '/nothing/here');
    await send('DELETE', '/wait/1');

    const { page, scraped } = await scrapeCounting();

    const count = (route: string, method: string, status: number) =>
      counted(page, { route, method, status_code: String(status) });
    expect(count('/wait/:ms', 'GET', 200)).toBe(2);
    expect(count('/bad/:id', 'GET', 400)).toBe(1);
    expect(count('/boom/:id', 'GET', 500)).toBe(1);
    expect(count('/cats/:id', 'POST', 201)).toBe(1);
    expect(count('unmatched', 'OTHER', 404)).toBe(2);
    expect(counted(page)).toBe(7 + scraped);
    const waited = { route: '/wait/:ms', method: 'GET', status_code: '200' };
    expect(page.sum(`${DURATION}_bucket`, { ...waited, le: '+Inf' })).toBe(2);
    const sum = page.sum(`${DURATION}_sum`, waited);
    expect(sum).toBeGreaterThan(0.001);
    expect(sum).toBeLessThan(10);
  });

  it('has the routes of the endpoints themselves', async () => {
    for (const path of ['/health', '/health/live', '/health/ready', '/metrics']) {
      await request(cluster.url, path);
    }

    const { page, scraped } = await scrapeCounting();

    for (const [route, times] of [
      ['/health', 1],
      ['/health/live', 1],
      ['/health/ready', 1],
      ['/metrics', 1 + scraped],
    ] as const) {
      expect([route, counted(page, { route, status_code: '200' })]).toEqual([route, times]);
    }
    expect(counted(page, { route: 'unmatched' })).toBe(0);
  });
});

describe("the app's own metrics that are not as they should be:", () => {
  it('default metrics that the app collects itself are shown once, without a warning', async () => {
    const cluster = await started({ env: behaviour('metrics#defaults') });

    const page = await scrape(cluster);

    expect(page.values('process_cpu_user_seconds_total')).toHaveLength(1);
    expect(page.text.match(/^# TYPE process_cpu_user_seconds_total /gm)).toHaveLength(1);
    expect(cluster.output).not.toContain('exists twice');
  });

  it('names that the page of the cluster has do not break it', async () => {
    const cluster = await started({ env: behaviour('metrics#takenName') });

    const page = await scrape(cluster);

    expect(page.text.match(/^# TYPE nestjs_cluster_workers /gm)).toHaveLength(1);
    await cluster.until('a warning that names the remedy', () =>
      /nestjs_cluster_workers.*Rename or remove/.test(cluster.output),
    );
  });

  it('a collect() that hangs does not hold up the page', async () => {
    const cluster = await started({ env: behaviour('metrics#hangingCollect') });

    // At best: a machine that is busy elsewhere delays some, not each.
    let best = Infinity;
    for (let i = 0; i < 2 || (best >= 1_500 && i < 15); i += 1) {
      const startedAt = performance.now();
      expect((await scrape(cluster)).values('nestjs_cluster_worker_up')).toEqual([1, 1]);
      best = Math.min(best, performance.now() - startedAt);
    }

    expect(best).toBeLessThan(1_500);
    expect(cluster.all('worker-died')).toEqual([]);
  });
});

// The last, for they wait.
describe('when workers have sent their metrics of their own accord', () => {
  it('those whose collect() rejects have ended no worker', async () => {
    const cluster = aged.rejecting;
    const pids = cluster.workerPids;

    await pushed(cluster);

    expect(cluster.all('worker-died')).toEqual([]);
    expect(cluster.workerPids).toEqual(pids);
    expect(pids).toHaveLength(2);
    cluster.kill('SIGTERM');
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
    expect(cluster.all('worker-stopped').map(({ problem }) => problem)).toEqual([null, null]);
  });

  it('those that nobody scraped outlive their workers', async () => {
    const cluster = aged.unscraped;
    const pids = cluster.workerPids;

    await pushed(cluster);
    for (const pid of pids) process.kill(pid, 'SIGKILL');
    await cluster.until(
      'two other workers',
      () =>
        cluster.workerPids.length === 2 && cluster.workerPids.every((pid) => !pids.includes(pid)),
    );

    expect((await scrapeBoth(cluster)).sum('cats_total')).toBe(askedOfUnscraped);
  });
});
