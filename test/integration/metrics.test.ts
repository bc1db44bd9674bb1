import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { fallen, readCounters } from '../chaos/scraper.mjs';
import { clusterReport } from '../support/health.js';
import { getJson, Load, request } from '../support/http-client.js';
import { MetricsPage } from '../support/metrics-page.js';
import { hasPrimary, scrape as scrapeUrl, scrapeAll } from '../support/scrape.js';

const DURATION = 'http_request_duration_seconds';

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

/** Metrics are sent every 10 s where nobody asks: by this age each worker has. */
const PUSHED_AFTER_SECONDS = 18;

/** It grows old while the other tests run. */
let unscraped: ClusterProcess;
let askedOfUnscraped: number;

beforeAll(async () => {
  unscraped = await ClusterProcess.start({
    options: { hangTimeoutMs: 60_000 },
    env: behaviour('metrics#ofEachType'),
  });
  askedOfUnscraped = await askEveryWorker(unscraped, '/count');
});

afterAll(stopAll);

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
    const KILLS = 4;
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

// The last, because it waits.
describe('when workers have sent their metrics of their own accord', () => {
  it('those that nobody scraped outlive their workers', async () => {
    const cluster = unscraped;
    const pids = cluster.workerPids;

    await eventually(
      'workers older than it takes to send metrics of their own accord',
      () => clusterReport(cluster.url),
      ({ workers }) => workers.every(({ uptimeSeconds }) => uptimeSeconds > PUSHED_AFTER_SECONDS),
    );
    for (const pid of pids) process.kill(pid, 'SIGKILL');
    await cluster.until(
      'two other workers',
      () =>
        cluster.workerPids.length === 2 && cluster.workerPids.every((pid) => !pids.includes(pid)),
    );

    expect((await scrapeBoth(cluster)).sum('cats_total')).toBe(askedOfUnscraped);
  });
});
