import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import {
  decodeMetrics,
  encodeMetrics,
  type MetricJson,
  readRegistry,
} from '../../src/metrics/metric-json.js';

const gauge = (value: number) => ({
  name: 'g',
  help: 'h',
  type: 'gauge' as const,
  values: [{ labels: {}, value }],
});

describe('encoded metrics', () => {
  it.each([0, 1, -1, 0.1, 1e300, Number.MAX_SAFE_INTEGER, NaN, Infinity, -Infinity])(
    'decode to what they were: %d',
    (value) => {
      expect(decodeMetrics(encodeMetrics([gauge(value)]))).toEqual([gauge(value)]);
    },
  );

  it('decode with every field, and labels of every sort', () => {
    const metrics: MetricJson[] = [
      {
        name: 'h_seconds',
        help: 'with "quotes"\nand lines',
        type: 'histogram' as const,
        aggregator: 'sum',
        values: [
          { labels: { le: 0.5, value: 'NaN', path: '/é\u0000"\n' }, value: 3, metricName: 'h_b' },
          { labels: { le: '+Inf', value: '5' }, value: NaN, metricName: 'h_b' },
        ],
      },
    ];
    expect(decodeMetrics(encodeMetrics(metrics))).toEqual(metrics);
  });

  it.each([NaN, Infinity, -Infinity])('keep the label %d as prom-client prints it', (n) => {
    const metrics = [{ ...gauge(1), values: [{ labels: { n }, value: 1 }] }];
    const [decoded] = decodeMetrics(encodeMetrics(metrics));
    expect(String(decoded!.values[0]!.labels['n'])).toBe(String(n));
  });

  it('are one line of text', () => {
    expect(encodeMetrics([{ ...gauge(1), help: 'a\nb' }])).not.toContain('\n');
  });

  it('of a worker without metrics are an empty text, which decodes to none', () => {
    expect(decodeMetrics('')).toEqual([]);
  });
});

describe('readRegistry', () => {
  it('gives every metric of a registry, zero values and empty metrics included', async () => {
    const registry = new Registry();
    const registers = [registry];
    new Counter({ name: 'zero_total', help: 'z', registers });
    new Counter({ name: 'none_total', help: 'n', labelNames: ['a'], registers });
    new Gauge({ name: 'g', help: 'g', registers, aggregator: 'max' }).set(2);

    expect(await readRegistry(registry)).toEqual([
      {
        name: 'zero_total',
        help: 'z',
        type: 'counter',
        aggregator: 'sum',
        values: [{ labels: {}, value: 0 }],
      },
      { name: 'none_total', help: 'n', type: 'counter', aggregator: 'sum', values: [] },
      {
        name: 'g',
        help: 'g',
        type: 'gauge',
        aggregator: 'max',
        values: [{ labels: {}, value: 2 }],
      },
    ]);
  });

  it('names the buckets, sum and count of a histogram', async () => {
    const registry = new Registry();
    new Histogram({ name: 'h', help: 'h', buckets: [1], registers: [registry] }).observe(5);
    const [histogram] = await readRegistry(registry);
    expect(histogram!.values).toEqual([
      { labels: { le: 1 }, value: 0, metricName: 'h_bucket' },
      { labels: { le: '+Inf' }, value: 1, metricName: 'h_bucket' },
      { labels: {}, value: 5, metricName: 'h_sum' },
      { labels: {}, value: 1, metricName: 'h_count' },
    ]);
  });

  it('includes the default labels of the registry', async () => {
    const registry = new Registry();
    registry.setDefaultLabels({ app: 'shop' });
    new Counter({ name: 'c_total', help: 'c', registers: [registry] }).inc(3);
    expect((await readRegistry(registry))[0]!.values).toEqual([
      { labels: { app: 'shop' }, value: 3 },
    ]);
  });

  it('leaves out exemplars, which cannot be merged', async () => {
    const registry = new Registry();
    registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE as never);
    const counter = new Counter({
      name: 'c',
      help: 'c',
      registers: [registry],
      enableExemplars: true,
    });
    counter.inc({ value: 1, labels: {}, exemplarLabels: { traceId: 'abc' } });
    expect(encodeMetrics(await readRegistry(registry))).not.toContain('abc');
  });
});
