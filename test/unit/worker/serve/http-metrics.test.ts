import type { AbstractHttpAdapter } from '@nestjs/core';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { AggregatorRegistry, Counter, Histogram, Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { resolveModuleOptions } from '../../../../src/contract/options/module.js';
import { MAX_METRICS_BODY_LENGTH } from '../../../../src/contract/snapshot/types.js';
import { encodeMetrics } from '../../../../src/contract/snapshot/metrics-body.js';
import { Routes } from '../../../../src/observe/endpoints/routes.js';
import { HttpMetrics } from '../../../../src/worker/serve/http-metrics.js';
import { UNMATCHED } from '../../../../src/worker/serve/route-template.js';
import { samplesOf } from '../../support/metric-json.js';

const SECONDS = 'http_request_duration_seconds';
const BYTES = 'http_response_size_bytes';
const ABORTED = 'http_requests_aborted_total';
const BUCKETS = [0.005, 0.01, 0.1, 1, 10];
const { buckets: DEFAULT_BUCKETS } = resolveModuleOptions({}).metrics as {
  buckets: readonly number[];
};
const SIZES = [100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];

interface Observation {
  readonly method: string;
  readonly route: string;
  /** 0: its client went away. */
  readonly status: number;
  readonly ms: number;
  readonly bytes?: number | undefined;
}

const one = (ms: number): Observation => ({ method: 'GET', route: '/', status: 200, ms, bytes: 1 });

function metricsOf(observations: readonly Observation[], maxSeries?: number): HttpMetrics {
  const http = new HttpMetrics(BUCKETS, maxSeries);
  for (const observation of observations) observe(http, observation);
  return http;
}

function observe(http: HttpMetrics, { method, route, status, ms, bytes }: Observation): void {
  const request = { method } as IncomingMessage;
  if (route !== UNMATCHED) routed(route, request);
  if (status === 0) http.aborted(request);
  else http.finished(request, { statusCode: status } as ServerResponse, ms, bytes);
}

/** Has the route of this path answer the request. */
function routed(path: string, request: IncomingMessage): void {
  let handle = (_request: IncomingMessage): void => {};
  const adapter = {
    getType: () => 'express',
    get: (_path: string, handler: typeof handle) => void (handle = handler),
  };
  new Routes(resolveModuleOptions({})).follow(adapter as unknown as AbstractHttpAdapter);
  adapter.get(path, handle);
  handle(request);
}

/** The lines of a page in an order of their own, with labels in an order of their own. */
function linesOf(page: string): string[] {
  return page
    .split('\n')
    .filter(Boolean)
    .map((line) =>
      line.replace(
        /\{(.*)\}/,
        (_, labels: string) => `{${labels.split(',').toSorted().join(',')}}`,
      ),
    )
    .toSorted();
}

const ours = async (observations: readonly Observation[]) =>
  linesOf(
    await AggregatorRegistry.aggregate([metricsOf(observations).metrics()] as never).metrics(),
  );

async function theirs(observations: readonly Observation[]): Promise<string[]> {
  const registry = new Registry();
  const registers = [registry];
  const labelNames = ['method', 'route', 'status_code'];
  const help = (name: string) =>
    metricsOf([])
      .metrics()
      .find((each) => each.name === name)!.help;
  const histogram = (name: string, bounds: readonly number[]) =>
    new Histogram({ name, help: help(name), labelNames, buckets: [...bounds], registers });
  const [seconds, bytes] = [histogram(SECONDS, BUCKETS), histogram(BYTES, SIZES)];
  const left = new Counter({ name: ABORTED, help: help(ABORTED), labelNames, registers });
  for (const { method, route, status, ms, bytes: size } of observations) {
    const labels = { method, route, status_code: String(status) };
    if (status === 0) left.inc({ method, route });
    else {
      seconds.observe(labels, ms / 1_000);
      if (size !== undefined) bytes.observe(labels, size);
    }
  }
  return linesOf(await registry.metrics());
}

describe('the metrics of HTTP requests', () => {
  it('are the same page as those of prom-client', async () => {
    const observations = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'].flatMap(
      (method, m) =>
        ['/', '/cats/:id', '/dogs'].flatMap((route, r) =>
          [100, 204, 301, 404, 999, 0].flatMap((status, s) =>
            Array.from({ length: 5 }, (_, i) => ({
              method,
              route,
              status,
              ms: (m * 31 + r * 17 + s * 7 + i) ** 2 / 10,
              // The size of some is not known.
              bytes: i === 4 ? undefined : (m * 31 + r * 17 + s * 7 + i) ** 3,
            })),
          ),
        ),
    );
    const lines = await ours(observations);
    expect(lines).toEqual(await theirs(observations));
    // HELP and TYPE of three; 7 × 3 × 5 series of 6 and of 7 buckets with a sum and a count; 7 × 3.
    expect(lines).toHaveLength(3 * 2 + 105 * (8 + 9) + 21);
  });

  it.each([
    ...[0, 4.999, 5, 5.001, 1_000, 10_000, 10_000.1].map((ms) => one(ms)),
    ...[0, 100, 101, 10_000_000, 10_000_001].map((bytes) => ({ ...one(1), bytes })),
  ])('count $ms ms and $bytes bytes in the buckets of prom-client', async (observation) => {
    expect(await ours([observation])).toEqual(await theirs([observation]));
  });

  it('have one series of what no route matched, whatever the method, and one of unknown methods', async () => {
    const METHODS = ['GET', 'POST', 'PROPFIND', 'LOCK'];
    const all = METHODS.flatMap((method) => [
      { ...one(1), method, route: UNMATCHED, status: 404 },
      { ...one(1), method, route: UNMATCHED, status: 0 },
      { ...one(1), method, route: '/all' },
    ]);
    const lines = (await ours(all)).filter((line) => /^[a-z_]+_(seconds_count|total)\{/.test(line));
    expect(lines).toEqual([
      `${SECONDS}_count{method="GET",route="/all",status_code="200"} 1`,
      `${SECONDS}_count{method="OTHER",route="/all",status_code="200"} 2`,
      `${SECONDS}_count{method="OTHER",route="unmatched",status_code="404"} 4`,
      `${SECONDS}_count{method="POST",route="/all",status_code="200"} 1`,
      `${ABORTED}{method="OTHER",route="unmatched"} 4`,
    ]);
  });

  it('have no series before the first request, and their HELP and TYPE', async () => {
    expect(await ours([])).toEqual(await theirs([]));
    expect(await ours([])).toHaveLength(6);
  });
});

describe('more series than there may be', () => {
  it('leave a quarter of the room that a process has for its metrics', () => {
    const http = new HttpMetrics(DEFAULT_BUCKETS);
    for (let i = 0; i < 12_000; i += 1) {
      const route = `/${'x'.repeat(50)}${Math.floor(i / 600)}`;
      observe(http, { ...one(0.123 * i), route, status: 200 + (i % 600), bytes: i });
    }
    expect(encodeMetrics(http.metrics()).length).toBeLessThan(MAX_METRICS_BODY_LENGTH * 0.75);
  });

  const routes = (...all: string[]) => all.map((route) => ({ ...one(1), route }));

  /** The count of each series, without the name and what all have in common. */
  function countsOf(http: HttpMetrics): Record<string, number> {
    const pattern = new RegExp(
      `^${SECONDS}_count{method="(\\w+)",route="(.+)",status_code="(\\d+)"`,
    );
    return Object.fromEntries(
      Object.entries(samplesOf(http.metrics())).flatMap(([series, count]) => {
        const labels = pattern.exec(series);
        return labels === null ? [] : [[labels.slice(1).join(' '), count]];
      }),
    );
  }

  it('are counted under one route: those that were there first stay, and go on counting', () => {
    expect(countsOf(metricsOf(routes('/a', '/b', '/c', '/a', '/d', '/c'), 2))).toEqual({
      'GET /a 200': 2,
      'GET /b 200': 1,
      'GET other 200': 3,
    });
  });
});
