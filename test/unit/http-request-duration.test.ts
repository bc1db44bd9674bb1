import type { IncomingMessage, ServerResponse } from 'node:http';
import { Histogram, type Metric, Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { HttpRequestDuration } from '../../src/metrics/http-request-duration.js';

const NAME = 'http_request_duration_seconds';
const BUCKETS = [0.005, 0.01, 0.1, 1, 10];

interface Observation {
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly ms: number;
}

function observeAll(
  observations: readonly Observation[],
  buckets: readonly number[] = BUCKETS,
): HttpRequestDuration {
  const duration = new HttpRequestDuration(NAME, buckets, (request) => request.url!);
  for (const { method, route, status, ms } of observations) {
    duration.observe(
      { method, url: route } as IncomingMessage,
      { statusCode: status } as ServerResponse,
      ms,
    );
  }
  return duration;
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

async function ours(observations: readonly Observation[], buckets = BUCKETS): Promise<string[]> {
  const registry = new Registry();
  registry.registerMetric(observeAll(observations, buckets) as unknown as Metric);
  return linesOf(await registry.metrics());
}

async function theirs(observations: readonly Observation[], buckets = BUCKETS): Promise<string[]> {
  const registry = new Registry();
  const histogram = new Histogram({
    name: NAME,
    help: new HttpRequestDuration(NAME, [], () => '').help,
    labelNames: ['method', 'route', 'status_code'],
    buckets: [...buckets],
    registers: [registry],
  });
  for (const { method, route, status, ms } of observations) {
    histogram.observe({ method, route, status_code: String(status) }, ms / 1_000);
  }
  return linesOf(await registry.metrics());
}

const one = (ms: number): Observation => ({ method: 'GET', route: '/', status: 200, ms });

describe('http_request_duration_seconds', () => {
  it('is the same page as that of a Histogram of prom-client', async () => {
    const observations = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'].flatMap(
      (method, m) =>
        ['/', '/cats/:id', 'unmatched'].flatMap((route, r) =>
          [200, 204, 301, 404, 500].flatMap((status, s) =>
            Array.from({ length: 5 }, (_, i) => ({
              method,
              route,
              status,
              ms: (m * 31 + r * 17 + s * 7 + i) ** 2 / 10,
            })),
          ),
        ),
    );
    const lines = await ours(observations);
    expect(lines).toEqual(await theirs(observations));
    // HELP and TYPE, then 7 × 3 × 5 series of 6 buckets, a sum and a count.
    expect(lines).toHaveLength(2 + 105 * 8);
  });

  it.each([0, 4.999, 5, 5.001, 10, 999.9, 1_000, 10_000, 10_000.1, 86_400_000])(
    'counts %d ms in the same buckets as prom-client: a bound belongs to its bucket',
    async (ms) => {
      expect(await ours([one(ms)])).toEqual(await theirs([one(ms)]));
    },
  );

  it('may have one bucket only', async () => {
    const observations = [one(1), one(5_000)];
    expect(await ours(observations, [1])).toEqual(await theirs(observations, [1]));
  });

  it('has no series before the first request, and its HELP and TYPE', async () => {
    expect(await ours([])).toEqual(await theirs([]));
    expect(await ours([])).toHaveLength(2);
  });

  it.each(['PROPFIND', 'CONNECT', 'TRACE', 'get', 'X'.repeat(1_000), '', undefined])(
    'has one label for all other methods: %s is OTHER',
    (method) => {
      const { values } = observeAll([{ ...one(1), method: method as string }]).get();
      expect(new Set(values.map(({ labels }) => labels['method']))).toEqual(new Set(['OTHER']));
    },
  );

  it('has as few series as it has methods, however many words clients send', () => {
    const observations = Array.from({ length: 1_000 }, (_, i) => ({
      ...one(1),
      method: `WORD${i}`,
    }));
    expect(observeAll(observations).get().values).toHaveLength(BUCKETS.length + 3);
  });

  it.each([100, 200, 418, 599, 999])('labels the status code %d as it is', (status) => {
    for (const method of ['GET', 'OPTIONS', 'PROPFIND']) {
      const { values } = observeAll([{ ...one(1), method, status }]).get();
      expect(new Set(values.map(({ labels }) => labels['status_code']))).toEqual(
        new Set([String(status)]),
      );
      expect(values[0]!.labels['method']).toBe(method === 'PROPFIND' ? 'OTHER' : method);
    }
  });

  it('keeps apart what differs in one label only', () => {
    const base = one(1);
    const values = observeAll([
      base,
      { ...base, method: 'POST' },
      { ...base, route: '/x' },
      { ...base, status: 201 },
    ]).get().values;
    const counts = values.filter(({ metricName }) => metricName === `${NAME}_count`);
    expect(counts.map(({ value }) => value)).toEqual([1, 1, 1, 1]);
  });

  it('is a histogram that is summed over workers', () => {
    expect(observeAll([]).get()).toMatchObject({
      name: NAME,
      type: 'histogram',
      aggregator: 'sum',
    });
  });

  it('gives a copy: what was scraped does not change with the next request', () => {
    const duration = observeAll([one(1)]);
    const before = duration.get();
    const text = JSON.stringify(before);
    duration.observe({ method: 'GET', url: '/' } as never, { statusCode: 200 } as never, 1);
    expect(JSON.stringify(before)).toBe(text);
    expect(JSON.stringify(duration.get())).not.toBe(text);
  });

  it('forgets all on reset', () => {
    const duration = observeAll([one(1)]);
    duration.reset();
    expect(duration.get().values).toEqual([]);
  });
});
