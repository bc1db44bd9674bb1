import type { AbstractHttpAdapter } from '@nestjs/core';
import { Counter, Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import type { EndpointRequest } from '../../../../src/observe/endpoints/mount-endpoint.js';
import { MetricsEndpoint } from '../../../../src/observe/metrics/metrics.endpoint.js';
import { resolveModuleOptions } from '../../../../src/contract/options/module.js';
import type { CollectedMetrics, MetricsSource } from '../../../../src/contract/snapshot/index.js';
import { decodeMetrics } from '../../../../src/contract/snapshot/metrics-body.js';
import { MetricsPage } from '../../../support/metrics-page.js';
import { body as bodyOf, SNAPSHOT } from '../../support/fake-relay.js';
import { samplesOf } from '../../support/metric-json.js';

/** The result of a collection in which the workers sent these bodies. */
const collectedOf = (bodies: readonly string[], retired: readonly string[] = []) => ({
  snapshot: SNAPSHOT,
  workers: bodies.map((body, slot) => ({ slot, generation: 0, ageMs: 0, body })),
  retired,
});

async function start({ perWorker = false, slot = 3 } = {}) {
  const registry = new Registry();
  const collections: ((collected: CollectedMetrics) => void)[] = [];
  let source: MetricsSource | undefined;
  let handler: ((request: EndpointRequest, response: unknown) => void) | undefined;
  const link = {
    identity: { slot, pid: 1, generation: 0 },
    observeResponses: () => {},
    provideMetrics: (given: MetricsSource) => (source = given),
    collectMetrics: () =>
      new Promise<CollectedMetrics>((resolve) => void collections.push(resolve)),
  };
  const adapter = {
    getType: () => 'express',
    get: (_path: string, handle: typeof handler) => (handler = handle),
    setHeader: () => {},
    reply: (response: (body: string, status: number) => void, body: string, status: number) =>
      response(body, status),
  } as unknown as AbstractHttpAdapter;
  const endpoint = new MetricsEndpoint(link);
  const { metrics } = resolveModuleOptions({
    metrics: { registry, perWorker, path: '/m' },
  });
  if (metrics === false) throw new Error('there are no metrics');
  await endpoint.measure(metrics);
  const path = endpoint.mount(adapter, metrics);
  return {
    path,
    registry,
    collections,
    source: source!,
    scrape: (headers: EndpointRequest['headers'] = {}) =>
      new Promise<{ body: string; status: number }>((resolve) =>
        handler!({ headers }, (body: string, status: number) => resolve({ body, status })),
      ),
  };
}

describe('the metrics endpoint', () => {
  it('is at its path, and shows what the cluster has collected', async () => {
    const { path, scrape, collections } = await start();
    expect(path).toBe('/m');
    const page = scrape();
    collections[0]!(collectedOf([bodyOf(1), bodyOf(2)], [bodyOf(4)]));
    const { body, status } = await page;
    expect(status).toBe(200);
    const metrics = new MetricsPage(body);
    expect(metrics.values('c')).toEqual([7]);
    expect(metrics.values('nestjs_cluster_workers_desired')).toEqual([SNAPSHOT.desired]);
  });

  it('is one collection for all that ask at once, and anew after that', async () => {
    const { scrape, collections } = await start();
    const pages = Promise.all([scrape(), scrape(), scrape()]);
    expect(collections).toHaveLength(1);
    collections[0]!(collectedOf([bodyOf(1)]));
    const [page, ...others] = await pages;
    expect(others).toEqual([page, page]);
    const next = scrape();
    expect(collections).toHaveLength(2);
    collections[1]!(collectedOf([]));
    await next;
  });

  it.each([
    [false, 'app_total{}'],
    [true, 'app_total{worker="3"}'],
  ])('labels what this process measures with its slot: %s', async (perWorker, series) => {
    const { source, registry } = await start({ perWorker });
    new Counter({ name: 'app_total', help: 'a', registers: [registry] }).inc();
    expect(samplesOf(decodeMetrics(await source.serialize()))).toMatchObject({ [series]: 1 });
  });
});
