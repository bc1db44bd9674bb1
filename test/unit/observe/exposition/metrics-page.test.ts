import { gunzipSync } from 'node:zlib';
import * as client from 'prom-client';
import { describe, expect, it } from 'vitest';
import type { MetricJson, PrometheusClient } from '../../../../src/contract/snapshot/types.js';
import { encodeMetrics } from '../../../../src/contract/snapshot/metrics-body.js';
import { clusterRegistry, MetricsPage } from '../../../../src/observe/exposition/metrics-page.js';
import { SNAPSHOT } from '../../support/fake-relay.js';
import { counter, histogram, metric } from '../../support/metric-json.js';

interface Setup {
  /** The metrics of each live worker, the oldest generation first. */
  readonly live?: readonly (readonly MetricJson[])[];
  readonly retired?: readonly (readonly MetricJson[])[];
  readonly snapshotAgeMs?: number;
}

async function pageOf({ live = [], retired = [], snapshotAgeMs }: Setup) {
  const { registry, conflicts } = clusterRegistry(client as unknown as PrometheusClient, {
    snapshot: SNAPSHOT,
    workers: live.map((metrics, i) => ({
      slot: i,
      generation: i,
      ageMs: 0,
      body: encodeMetrics(metrics),
    })),
    retired: [...retired.map(encodeMetrics), 'no metrics'],
    snapshotAgeMs,
  });
  const text = await registry.metrics();
  return { text, lines: text.split('\n'), conflicts, contentType: registry.contentType };
}

describe('the metrics of the whole cluster', () => {
  it('are the sum of all workers, those that have ended included, and the metrics of the cluster', async () => {
    const { lines, conflicts } = await pageOf({
      live: [[counter(1)], [counter(2)]],
      retired: [[counter(4)], [metric('counter', 'd', [[{}, 8]])]],
    });
    expect(lines).toContain('c 7');
    expect(lines).toContain('d 8');
    expect(lines).toContain('nestjs_cluster_workers_desired 2');
    expect(conflicts).toEqual([]);
  });

  it("have the app's metric if both have one of the same name, and say so", async () => {
    const name = 'nestjs_cluster_workers';
    const { text, conflicts } = await pageOf({ live: [[metric('gauge', name, [[{}, 42]])]] });
    expect(text.match(/^nestjs_cluster_workers\b.*$/gm)).toEqual([`${name} 42`]);
    expect(conflicts).toEqual([name]);
  });

  it('have no counter of the cluster if the primary did not answer', async () => {
    const { lines } = await pageOf({ snapshotAgeMs: 900 });
    expect(lines).toContain('nestjs_cluster_snapshot_age_seconds 0.9');
    expect(lines.filter((line) => line.endsWith(' counter'))).toEqual([]);
    expect((await pageOf({})).lines).toContain('# TYPE nestjs_cluster_reloads_total counter');
  });

  it('have the histograms of the newest generation only, if the buckets have changed', async () => {
    const [old, young] = [histogram({ 1: 5, '+Inf': 5 }, 5), histogram({ 2: 1, '+Inf': 1 }, 1)];
    const shown = async (setup: Setup) =>
      (await pageOf(setup)).lines.filter((line) => line.startsWith('h_'));
    expect(await shown({ live: [[old], [young]], retired: [[old], [young]] })).toEqual([
      'h_bucket{le="2"} 2',
      'h_bucket{le="+Inf"} 2',
      'h_sum 2',
      'h_count 2',
    ]);
    // Until the newest worker has an observation, the older ones are shown.
    expect(await shown({ live: [[old], [{ ...young, values: [] }]] })).toContain('h_count 5');
  });

  it('are the text that prom-client writes', async () => {
    const registry = new client.Registry();
    const common = { labelNames: ['a'], registers: [registry], help: 'c "x" \\ \n' };
    new client.Counter({ name: 'c_total', ...common }).inc({ a: 'x"\\\né' }, 2);
    const gauge = new client.Gauge({ name: 'g', ...common });
    for (const value of [NaN, Infinity, -Infinity, 1e-9]) gauge.set({ a: String(value) }, value);
    new client.Histogram({ name: 'h', buckets: [0.1, 1], ...common }).observe(0.5);
    new client.Summary({ name: 's', percentiles: [0.5], ...common }).observe(3);
    const metrics = (await registry.getMetricsAsJSON()) as unknown as MetricJson[];
    const { text, contentType } = await pageOf({ live: [metrics] });
    expect(text).toContain(await registry.metrics());
    expect(contentType).toBe(registry.contentType);
  });
});

const TYPE = 'text/plain; version=0.0.4; charset=utf-8';
const LARGE = 'é 1\n'.repeat(1_000);

const respond = (headers: Record<string, string | undefined>, text = LARGE) =>
  new MetricsPage(TYPE, text).respond({ headers });

/** The `Accept` header of Prometheus 3. */
const PROMETHEUS =
  'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.3,*/*;q=0.2';

describe('a page of metrics', () => {
  it('has the type of its text, whatever is asked for', async () => {
    expect(await respond({ accept: PROMETHEUS })).toEqual({
      status: 200,
      contentType: TYPE,
      body: LARGE,
      headers: { Vary: 'Accept-Encoding' },
    });
  });

  it.each([
    ['gzip', true],
    ['gzip, deflate, br, zstd', true],
    ['gzip;q=0.5, identity;q=0.1', true],
    ['identity', false],
    ['gzip;q=0.1, identity;q=0.5', false],
  ])('for %s is gzip: %s', async (encoding, gzipped) => {
    const { body, headers } = await respond({ 'accept-encoding': encoding });
    expect(headers).toEqual({
      Vary: 'Accept-Encoding',
      ...(gzipped && { 'Content-Encoding': 'gzip' }),
    });
    expect(gzipped ? gunzipSync(body).toString() : body).toBe(LARGE);
  });

  it('is not compressed below 1 KiB', async () => {
    const gzip = { 'accept-encoding': 'gzip' };
    expect((await respond(gzip, 'x'.repeat(1_023))).body).toHaveLength(1_023);
    expect((await respond(gzip, 'x'.repeat(1_024))).body.length).toBeLessThan(1_000);
  });

  it('is compressed once for all who ask', async () => {
    const page = new MetricsPage(TYPE, LARGE);
    const gzip = { headers: { 'accept-encoding': 'gzip' } };
    const [first, second] = await Promise.all([page.respond(gzip), page.respond(gzip)]);
    expect(first!.body).toBe(second!.body);
  });
});
