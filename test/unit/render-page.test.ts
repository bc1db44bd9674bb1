import { Counter, Gauge, Histogram, Registry, Summary } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { clusterMetrics } from '../../src/exposition/cluster-metrics.js';
import type { MetricFamily } from '../../src/exposition/metric-family.js';
import { CONTENT_TYPES, renderPage } from '../../src/exposition/render-page.js';
import { DroppedSamples } from '../../src/exposition/series-limit.js';
import { readRegistry } from '../../src/metrics/read-registry.js';
import { SNAPSHOT } from './fake-relay.js';
import { counter, family, gauge, histogram, summary } from './metric-families.js';
import { parseOpenMetrics } from './open-metrics.js';

const text = (...families: MetricFamily[]) => renderPage(families, 'text');
const openMetrics = (...families: MetricFamily[]) => renderPage(families, 'openmetrics');

describe('a page of text', () => {
  it('has the HELP, the TYPE and the samples of each metric, with a line between them', () => {
    expect(
      text(
        family('counter', 'hits_total', [
          [{}, 1],
          [{ a: 'x', b: 'y' }, 2.5],
        ]),
        gauge(-1),
        histogram({ 0.5: 1, '+Inf': 2 }, 3, { a: 'x' }),
        summary({ 0.9: 1 }, 2, 3),
      ),
    ).toBe(
      [
        '# HELP hits_total Help of hits_total',
        '# TYPE hits_total counter',
        'hits_total 1',
        'hits_total{a="x",b="y"} 2.5',
        '',
        '# HELP g Help of g',
        '# TYPE g gauge',
        'g -1',
        '',
        '# HELP h Help of h',
        '# TYPE h histogram',
        'h_bucket{le="0.5",a="x"} 1',
        'h_bucket{le="+Inf",a="x"} 2',
        'h_sum{a="x"} 3',
        'h_count{a="x"} 2',
        '',
        '# HELP s Help of s',
        '# TYPE s summary',
        's{quantile="0.9"} 1',
        's_sum 2',
        's_count 3',
        '',
      ].join('\n'),
    );
  });

  it('of nothing is empty', () => {
    expect(text()).toBe('');
  });

  it.each([
    [0, '0'],
    [-0, '0'],
    [0.1, '0.1'],
    [1e-7, '1e-7'],
    [1e21, '1e+21'],
    [2 ** 53, '9007199254740992'],
    [NaN, 'NaN'],
    [Infinity, '+Inf'],
    [-Infinity, '-Inf'],
  ])('writes %d as %s, in both formats', (value, written) => {
    expect(text(gauge(value))).toContain(`\ng ${written}\n`);
    expect(openMetrics(gauge(value))).toContain(`\ng ${written}\n`);
  });

  it('escapes backslashes and lines of a help text, and leaves its quotes', () => {
    const one = { ...gauge(1), help: 'a "quote", a \\ and\na line\\n' };
    expect(text(one)).toContain('# HELP g a "quote", a \\\\ and\\na line\\\\n\n');
    expect(openMetrics(one)).toContain('# HELP g a \\"quote\\", a \\\\ and\\na line\\\\n\n');
    expect(parseOpenMetrics(openMetrics(one))[0]!.help).toBe(one.help);
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
      limit: new DroppedSamples(100),
      workerLabel: undefined,
      unordered: false,
      last: new WeakMap(),
      hung: new WeakSet<object>(),
      failed: () => {},
    };
    const families = await readRegistry(registry, reading);
    // prom-client writes NaN as Nan, which only some read.
    const theirs = (await registry.metrics()).replace(/ Nan$/m, ' NaN');
    expect(renderPage(families, 'text')).toBe(theirs);
  });
});

describe('a page of OpenMetrics', () => {
  it('ends in # EOF and has no empty line', () => {
    const page = openMetrics(counter(1), gauge(2));
    expect(page.endsWith('\n# EOF\n')).toBe(true);
    expect(page).not.toContain('\n\n');
    expect(openMetrics()).toBe('# EOF\n');
  });

  it('calls a counter by its family, and its samples _total', () => {
    const page = openMetrics(family('counter', 'hits_total', [[{ a: 'x' }, 1]]));
    expect(page).toBe(
      '# HELP hits Help of hits_total\n# TYPE hits counter\nhits_total{a="x"} 1\n# EOF\n',
    );
    expect(parseOpenMetrics(page)).toMatchObject([
      { name: 'hits', samples: [{ name: 'hits_total', labels: { a: 'x' }, value: 1 }] },
    ]);
  });

  it('leaves a counter the name it has on the other page', () => {
    const page = openMetrics(family('counter', 'hits', [[{ a: 'x' }, 1]]));
    expect(page).toBe('# HELP hits Help of hits\n# TYPE hits unknown\nhits{a="x"} 1\n# EOF\n');
    expect(parseOpenMetrics(page)).toMatchObject([{ name: 'hits', type: 'unknown' }]);
  });

  it('has no family twice where a gauge has the name of a counter without its _total', () => {
    const page = openMetrics(
      family('gauge', 'jobs', [[{}, 2]]),
      family('counter', 'jobs_total', [[{}, 5]]),
    );
    expect(parseOpenMetrics(page)).toMatchObject([
      { name: 'jobs', type: 'gauge', samples: [{ name: 'jobs', value: 2 }] },
      { name: 'jobs_total', type: 'unknown', samples: [{ name: 'jobs_total', value: 5 }] },
    ]);
  });

  it('leaves the name of what is no counter and ends in _total', () => {
    expect(openMetrics(family('gauge', 'x_total', [[{}, 1]]))).toContain(
      '# TYPE x_total gauge\nx_total 1\n',
    );
  });

  it('has the names of histograms and summaries as they are', () => {
    const page = openMetrics(
      histogram({ 1: 1, '+Inf': 2 }, 3, { a: 'x' }),
      summary({ 0.5: 1 }, 2, 3),
    );
    expect(parseOpenMetrics(page)).toEqual([
      {
        name: 'h',
        type: 'histogram',
        help: 'Help of h',
        samples: [
          { name: 'h_bucket', labels: { le: '1', a: 'x' }, value: 1 },
          { name: 'h_bucket', labels: { le: '+Inf', a: 'x' }, value: 2 },
          { name: 'h_sum', labels: { a: 'x' }, value: 3 },
          { name: 'h_count', labels: { a: 'x' }, value: 2 },
        ],
      },
      {
        name: 's',
        type: 'summary',
        help: 'Help of s',
        samples: [
          { name: 's', labels: { quantile: '0.5' }, value: 1 },
          { name: 's_sum', labels: {}, value: 2 },
          { name: 's_count', labels: {}, value: 3 },
        ],
      },
    ]);
  });

  it('keeps what labels say, whatever it is', () => {
    const labels = { a: 'x"y\\z\nw,{}=', b: '\\n', c: '', d: 'é # EOF' };
    const [one] = parseOpenMetrics(openMetrics(gauge(1, 'sum', labels)));
    expect(one!.samples[0]!.labels).toEqual(labels);
  });

  it('is read by a strict parser with all that this package says of the cluster', () => {
    const metrics = clusterMetrics({ snapshot: SNAPSHOT, ageMs: 0, ages: [] }, 'app_');
    const families = parseOpenMetrics(renderPage(metrics, 'openmetrics'));
    expect(families.map(({ name }) => name)).toEqual(
      metrics.map(({ name, type }) => (type === 'counter' ? name.replace(/_total$/, '') : name)),
    );
    const samples = families.flatMap((each) => each.samples.map(({ name }) => name));
    expect(samples).toContain('app_nestjs_cluster_primary_cpu_seconds_total');
    expect(samples).toContain('app_nestjs_cluster_reloads_total');
  });
});

describe('the content types', () => {
  it('are those that Prometheus knows', () => {
    expect(CONTENT_TYPES).toEqual({
      text: Registry.PROMETHEUS_CONTENT_TYPE,
      openmetrics: Registry.OPENMETRICS_CONTENT_TYPE,
    });
  });
});
