import { Counter, Gauge, Histogram, type Metric, Registry } from 'prom-client';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { mergeFamilies } from '../../../../src/observe/exposition/merge-families.js';
import type { Labels } from '../../../../src/observe/exposition/metric-family.js';
import { encodeBody } from '../../../../src/observe/exposition/metrics-body.js';
import { SeriesLimit } from '../../../../src/observe/exposition/series-limit.js';
import { readRegistry, toFamily } from '../../../../src/observe/metrics/read-registry.js';
import { counter, gauge, samplesOf } from '../../support/metric-families.js';

afterEach(() => vi.useRealTimers());

function reading({
  maxSeries = 1_000,
  workerLabel,
  unordered = true,
}: { maxSeries?: number; workerLabel?: number | undefined; unordered?: boolean } = {}) {
  const limit = new SeriesLimit(maxSeries);
  const failures: [string, string][] = [];
  const failed = (name: string, reason: string) => void failures.push([name, reason]);
  return {
    limit,
    workerLabel,
    unordered,
    last: new WeakMap(),
    hung: new WeakSet<object>(),
    failed,
    failures,
  };
}

/** A registry with what `fill` makes of its constructor's arguments. */
function registryOf(fill: (registers: Registry[]) => void): Registry {
  const registry = new Registry();
  fill([registry]);
  return registry;
}

describe('a registry', () => {
  it('is read with every metric, zero values and empty metrics included', async () => {
    const registry = registryOf((registers) => {
      new Counter({ name: 'c', help: 'Help of c', registers });
      new Counter({ name: 'none_total', help: 'n', labelNames: ['a'], registers });
      new Gauge({ name: 'g', help: 'Help of g', registers, aggregator: 'max' }).set(2);
    });
    expect(await readRegistry(registry, reading())).toEqual([
      counter(0),
      {
        name: 'none_total',
        help: 'n',
        type: 'counter',
        aggregator: 'sum',
        columns: [],
        series: new Map(),
      },
      gauge(2, 'max'),
    ]);
  });

  it('is read with its default labels, and those of a sample before them', async () => {
    const registry = registryOf((registers) => {
      const c = new Counter({ name: 'c', help: 'c', labelNames: ['app', 'z'], registers });
      c.inc({ z: '1' }, 3);
      c.inc({ app: 'own' }, 4);
    });
    registry.setDefaultLabels({ app: 'shop' });
    expect(samplesOf(await readRegistry(registry, reading()))).toEqual({
      'c{app="shop",z="1"}': 3,
      'c{app="own"}': 4,
    });
  });

  it('is read with labels that are escaped, and known in whatever order they were given', async () => {
    const registry = registryOf((registers) => {
      const c = new Counter({ name: 'c', help: 'c', labelNames: ['a', 'b'], registers });
      c.inc({ b: 'q"', a: 'back\\slash\nline' }, 1);
    });
    const { limit } = reading();
    const families = await readRegistry(registry, reading());
    expect(samplesOf(families)).toEqual({ 'c{a="back\\\\slash\\nline",b="q\\""}': 1 });
    const other = registryOf((registers) => {
      const c = new Counter({ name: 'c', help: 'c', labelNames: ['b', 'a'], registers });
      c.inc({ a: 'back\\slash\nline', b: 'q"' }, 1);
    });
    const both = [families, await readRegistry(other, reading())];
    expect(Object.values(samplesOf(mergeFamilies(both, [], limit)))).toEqual([2]);
  });

  it('is read with labels in the order of its metrics where that is the same in each worker', async () => {
    const registry = registryOf((registers) => {
      const labelNames = ['z', 'a', 'le2'];
      const h = new Histogram({ name: 'h', help: 'h', labelNames, buckets: [1], registers });
      h.observe({ z: '1', a: '2' }, 1);
    });
    const [ordered] = await readRegistry(registry, reading({ unordered: false, workerLabel: 4 }));
    expect([...ordered!.series.keys()]).toEqual(['z="1",a="2",worker="4"']);
    const [sorted] = await readRegistry(registry, reading({ workerLabel: 4 }));
    expect([...sorted!.series.keys()]).toEqual(['a="2",worker="4",z="1"']);
  });

  it('is read without exemplars, which cannot be merged', async () => {
    const registry = new Registry();
    registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE as never);
    const one = new Counter({ name: 'c', help: 'c', registers: [registry], enableExemplars: true });
    one.inc({ value: 1, labels: {}, exemplarLabels: { traceId: 'abc' } });
    const families = await readRegistry(registry, reading());
    expect(samplesOf(families)).toEqual({ 'c{}': 1 });
    expect(encodeBody(families)).not.toContain('abc');
  });

  it('is read without what is no metric of Prometheus', async () => {
    const registry = registryOf((registers) => {
      new Gauge({ name: 'g', help: 'Help of g', registers }).set(1);
    });
    for (const type of ['untyped', 'info', undefined, 5]) {
      const odd = { name: `odd_${type}`, help: 'o', type, values: [{ labels: {}, value: 1 }] };
      registry.registerMetric({ ...odd, get: async () => odd } as unknown as Metric);
    }
    expect(await readRegistry(registry, reading())).toEqual([gauge(1)]);
  });

  it('is read with sum for a metric that says no aggregator', () => {
    const one = {
      name: 'c',
      help: 'Help of c',
      type: 'counter',
      values: [{ labels: {}, value: 1 }],
    };
    expect(toFamily(one, reading())).toEqual(counter(1));
  });

  it('is read as it is then: what was read does not change', async () => {
    let c: Counter;
    const registry = registryOf((registers) => {
      c = new Counter({ name: 'c', help: 'Help of c', registers });
    });
    const before = await readRegistry(registry, reading());
    c!.inc();
    expect(before).toEqual([counter(0)]);
    expect(await readRegistry(registry, reading())).toEqual([counter(1)]);
  });

  it('has null for a column that a series has not', () => {
    const values: { labels: Labels; value: number; metricName: string }[] = [
      { labels: { le: 1, a: 'x' }, value: 1, metricName: 'h_bucket' },
      { labels: { a: 'y' }, value: 2, metricName: 'h_sum' },
      { labels: { le: 2, a: 'x' }, value: 3, metricName: 'h_bucket' },
    ];
    const { columns, series } = toFamily(
      { name: 'h', help: '', type: 'histogram', values },
      reading(),
    )!;
    expect(columns).toHaveLength(3);
    expect([...series]).toEqual([
      ['a="x"', [1, null, 3]],
      ['a="y"', [null, 2, null]],
    ]);
  });

  it('keeps le and quantile where they are labels as any other', () => {
    const values = [{ labels: { le: '5', quantile: '1' }, value: 1 }];
    for (const type of ['gauge', 'counter']) {
      const one = toFamily({ name: 'x', help: '', type, values }, reading())!;
      expect(samplesOf([one])).toEqual({ 'x{le="5",quantile="1"}': 1 });
      expect(one.columns).toEqual([{ suffix: '', label: '' }]);
    }
  });
});

describe('a metric whose collect() does not end well', () => {
  const withBad = (collect: () => void | Promise<void>) =>
    registryOf((registers) => {
      new Gauge({ name: 'before', help: 'b', registers }).set(1);
      new Gauge({ name: 'bad', help: 'b', registers, collect });
      new Gauge({ name: 'after', help: 'a', registers }).set(2);
    });

  it('is there where it is slow, and leaves no timer behind', async () => {
    vi.useFakeTimers();
    const about = reading();
    const slow = withBad(() => new Promise<void>((resolve) => void setTimeout(resolve, 149)));
    const families = readRegistry(slow, about);
    await vi.advanceTimersByTimeAsync(149);
    expect(samplesOf(await families)).toEqual({ 'before{}': 1, 'bad{}': 0, 'after{}': 2 });
    expect([about.failures, vi.getTimerCount()]).toEqual([[], 0]);
  });

  it('is there again once it is well', async () => {
    let gone = true;
    const registry = withBad(() => {
      if (gone) throw new Error('database is gone');
    });
    const about = reading();
    await readRegistry(registry, about);
    gone = false;
    expect(samplesOf(await readRegistry(registry, about))).toMatchObject({ 'bad{}': 0 });
    expect(about.failures).toHaveLength(1);
  });
});

describe('more series than a metric may have', () => {
  const many = (count: number) =>
    registryOf((registers) => {
      const c = new Counter({ name: 'c', help: 'c', labelNames: ['a'], registers });
      for (let i = 0; i < count; i += 1) c.inc({ a: `x${i}` });
      const h = new Histogram({ name: 'h', help: 'h', labelNames: ['a'], buckets: [1], registers });
      for (let i = 0; i < count; i += 1) h.observe({ a: `x${i}` }, 1);
    });

  it('are left out: those that came first stay, and each sample counts once', async () => {
    const about = reading({ maxSeries: 3 });
    const families = await readRegistry(many(5), about);
    expect(families.map(({ series }) => [...series.keys()])).toEqual([
      ['a="x0"', 'a="x1"', 'a="x2"'],
      ['a="x0"', 'a="x1"', 'a="x2"'],
    ]);
    // A series of the histogram has two buckets, a sum and a count.
    expect(Object.fromEntries(about.limit.counts)).toEqual({ c: 2, h: 8 });
  });
});

describe('a worker that labels its series', () => {
  const label = (workerLabel: number | undefined) => reading({ workerLabel });

  it('has its slot on each, beside their own labels', async () => {
    const registry = registryOf((registers) => {
      new Counter({ name: 'c', help: 'c', registers }).inc(2);
      new Histogram({ name: 'h', help: 'h', labelNames: ['z'], buckets: [1], registers }).observe(
        { z: 'x' },
        1,
      );
    });
    for (const slot of [0, 3]) {
      expect(samplesOf(await readRegistry(registry, label(slot)))).toEqual({
        [`c{worker="${slot}"}`]: 2,
        [`h_bucket{le="1",worker="${slot}",z="x"}`]: 1,
        [`h_bucket{le="+Inf",worker="${slot}",z="x"}`]: 1,
        [`h_sum{worker="${slot}",z="x"}`]: 1,
        [`h_count{worker="${slot}",z="x"}`]: 1,
      });
    }
  });

  it('keeps what the app itself calls worker, as exported_worker', async () => {
    const registry = registryOf((registers) => {
      const c = new Counter({ name: 'c', help: 'c', labelNames: ['worker'], registers });
      c.inc({ worker: 'ann' }, 1);
      c.inc({ worker: 'bob' }, 2);
    });
    expect(samplesOf(await readRegistry(registry, label(1)))).toEqual({
      'c{exported_worker="ann",worker="1"}': 1,
      'c{exported_worker="bob",worker="1"}': 2,
    });
    expect(samplesOf(await readRegistry(registry, label(undefined)))).toEqual({
      'c{worker="ann"}': 1,
      'c{worker="bob"}': 2,
    });
  });

  it('renames it further where the app has that name too: no series is lost', async () => {
    const registry = registryOf((registers) => {
      const labelNames = ['worker', 'exported_worker', 'exported_exported_worker'];
      const c = new Counter({ name: 'c', help: 'c', labelNames, registers });
      c.inc({ worker: 'a', exported_worker: 'b' }, 1);
      c.inc({ worker: 'a', exported_worker: 'b', exported_exported_worker: 'c' }, 2);
      c.inc({ exported_worker: 'b' }, 4);
    });
    expect(samplesOf(await readRegistry(registry, label(1)))).toEqual({
      'c{exported_exported_worker="a",exported_worker="b",worker="1"}': 1,
      'c{exported_exported_exported_worker="a",exported_exported_worker="c",exported_worker="b",worker="1"}': 2,
      'c{exported_worker="b",worker="1"}': 4,
    });
  });

  it('shows what is omitted otherwise: the larger of the two that a reload has', async () => {
    const registryWith = (value: number) =>
      registryOf((registers) => {
        new Gauge({ name: 'g', help: 'g', registers, aggregator: 'omit' }).set(value);
        new Gauge({ name: 'm', help: 'm', registers, aggregator: 'min' }).set(value);
      });
    const [old, young] = [registryWith(5), registryWith(4)];
    const bodies = [await readRegistry(young, label(0)), await readRegistry(old, label(0))];
    expect(bodies[0]!.map(({ aggregator }) => aggregator)).toEqual(['max', 'min']);
    expect(samplesOf(mergeFamilies(bodies, [], reading().limit))).toEqual({
      'g{worker="0"}': 5,
      'm{worker="0"}': 4,
    });
    expect((await readRegistry(old, label(undefined)))[0]!.aggregator).toBe('omit');
  });

  it('does not change the samples of the registry', async () => {
    const registry = registryOf((registers) => {
      new Counter({ name: 'c', help: 'c', labelNames: ['worker'], registers }).inc({ worker: 'a' });
    });
    await readRegistry(registry, label(1));
    expect(await registry.metrics()).toContain('c{worker="a"} 1');
  });
});
