import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { request } from '../support/http-client.js';
import { Http2Client } from '../support/http2-client.js';
import { MetricsPage } from '../support/metrics-page.js';
import { IS_FIRST_RUN } from '../support/once.js';
import { RawClient } from '../support/raw-client.js';
import { scrape } from '../support/scrape.js';

const DURATION = 'http_request_duration_seconds';
const SIZE = 'http_response_size_bytes';
const ABORTED = 'http_requests_aborted_total';

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

    const page = await eventually(
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

    const page = await eventually(
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
});
