import { Counter, Gauge, Histogram, Registry, Summary } from 'prom-client';
import { describe, expect, it } from 'vitest';
import type { MetricFamily } from '../../../../src/observe/exposition/metric-family.js';
import { CONTENT_TYPE, renderPage } from '../../../../src/observe/exposition/render-page.js';
import { SeriesLimit } from '../../../../src/observe/exposition/series-limit.js';
import { readRegistry } from '../../../../src/observe/metrics/read-registry.js';
import { family, gauge, histogram } from '../../support/metric-families.js';

const text = (...families: MetricFamily[]) => renderPage(families);

describe('a page of text', () => {
  it('of nothing is empty', () => {
    expect(text()).toBe('');
  });

  it.each([
    [0, '0'],
    [-0, '0'],
    [1e-7, '1e-7'],
    [2 ** 53, '9007199254740992'],
    [NaN, 'NaN'],
    [Infinity, '+Inf'],
    [-Infinity, '-Inf'],
  ])('writes %d as %s', (value, written) => {
    expect(text(gauge(value))).toContain(`\ng ${written}\n`);
  });

  it('escapes backslashes and lines of a help text, and leaves its quotes', () => {
    const one = { ...gauge(1), help: 'a "quote", a \\ and\na line\\n' };
    expect(text(one)).toContain('# HELP g a "quote", a \\\\ and\\na line\\\\n\n');
  });

  it('leaves out what a series has not', () => {
    const { columns } = histogram({ 1: 0, '+Inf': 0 }, 0);
    const one = { ...histogram({ '+Inf': 0 }, 0), columns, series: new Map([['', [1, null, 0]]]) };
    expect(text(one).split('\n').slice(2)).toEqual(['h_bucket{le="1"} 1', 'h_sum 0', '']);
  });

  it('has HELP and TYPE of a metric without samples', () => {
    expect(text(family('counter', 'c_total', []))).toBe(
      '# HELP c_total Help of c_total\n# TYPE c_total counter\n',
    );
  });

  it('is that of prom-client', async () => {
    const registry = new Registry();
    const registers = [registry];
    new Counter({ name: 'c_total', help: 'c "x" \\ \n', labelNames: ['a', 'b'], registers }).inc(
      { a: 'x"\\\n', b: 'é' },
      2,
    );
    const g = new Gauge({ name: 'g', help: 'g', labelNames: ['a'], registers });
    for (const value of [NaN, Infinity, -Infinity, 1e-9, 5]) g.set({ a: String(value) }, value);
    const labelNames = ['z'];
    new Histogram({ name: 'h', help: 'h', labelNames, buckets: [0.1, 1], registers }).observe(
      { z: '1' },
      0.5,
    );
    new Summary({ name: 's', help: 's', labelNames, percentiles: [0.5], registers }).observe(
      { z: '1' },
      3,
    );
    const reading = {
      limit: new SeriesLimit(100),
      workerLabel: undefined,
      unordered: false,
      last: new WeakMap(),
      hung: new WeakSet<object>(),
      failed: () => {},
    };
    const families = await readRegistry(registry, reading);
    // prom-client writes NaN as Nan, which only some read.
    const theirs = (await registry.metrics()).replace(/ Nan$/m, ' NaN');
    expect(renderPage(families)).toBe(theirs);
  });
});

describe('the content type', () => {
  it('is that of prom-client', () => {
    expect(CONTENT_TYPE).toBe(Registry.PROMETHEUS_CONTENT_TYPE);
  });
});
