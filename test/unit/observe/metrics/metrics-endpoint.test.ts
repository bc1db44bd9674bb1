import type { AbstractHttpAdapter } from '@nestjs/core';
import { Counter, Registry } from 'prom-client';
import { expect, it } from 'vitest';
import type { EndpointRequest } from '../../../../src/observe/endpoints/mount-endpoint.js';
import { MetricsEndpoint } from '../../../../src/observe/metrics/metrics.endpoint.js';
import { resolveModuleOptions } from '../../../../src/contract/options/module.js';
import type { CollectedMetrics, MetricsSource } from '../../../../src/contract/snapshot/index.js';
import { decodeMetrics } from '../../../../src/contract/snapshot/metrics-body.js';
import { body as bodyOf, SNAPSHOT } from '../../support/fake-relay.js';
import { samplesOf } from '../../support/metric-json.js';

async function start(perWorker = false) {
  const registry = new Registry();
  const collections: ((collected: CollectedMetrics) => void)[] = [];
  let source: MetricsSource | undefined;
  let handler: ((request: EndpointRequest, response: unknown) => void) | undefined;
  const link = {
    identity: { slot: 3, pid: 1, generation: 0 },
    observeResponses: () => {},
    provideMetrics: (given: MetricsSource) => (source = given),
    collectMetrics: () =>
      new Promise<CollectedMetrics>((resolve) => void collections.push(resolve)),
  };
  const adapter = {
    getType: () => 'express',
    get: (_path: string, handle: typeof handler) => (handler = handle),
    setHeader: () => {},
    reply: (response: (body: string) => void, body: string) => response(body),
  } as unknown as AbstractHttpAdapter;
  const endpoint = new MetricsEndpoint(link);
  const { metrics } = resolveModuleOptions({ metrics: { registry, perWorker, path: '/m' } });
  if (metrics === false) throw new Error('there are no metrics');
  await endpoint.measure(metrics);
  const path = endpoint.mount(adapter, metrics);
  const scrape = () => new Promise<string>((resolve) => handler!({ headers: {} }, resolve));
  return { path, registry, collections, source: source!, scrape };
}

it('one collection of the cluster is the page for all that ask at once', async () => {
  const { path, scrape, collections } = await start();
  expect(path).toBe('/m');
  const pages = Promise.all([scrape(), scrape(), scrape()]);
  expect(collections).toHaveLength(1);
  collections[0]!({
    snapshot: SNAPSHOT,
    workers: [1, 2].map((n, slot) => ({ slot, generation: 0, ageMs: 0, body: bodyOf(n) })),
    retired: [bodyOf(4)],
  });
  const [page, ...others] = await pages;
  expect(others).toEqual([page, page]);
  expect(page).toMatch(/^c 7$/m);
  expect(page).toMatch(/^nestjs_cluster_workers_desired 2$/m);
});

it.each([
  [false, 'app_total{}'],
  [true, 'app_total{worker="3"}'],
])('perWorker labels what this process measures with its slot: %s', async (perWorker, series) => {
  const { source, registry } = await start(perWorker);
  new Counter({ name: 'app_total', help: 'a', registers: [registry] }).inc();
  expect(samplesOf(decodeMetrics(await source.serialize()))).toMatchObject({ [series]: 1 });
});
