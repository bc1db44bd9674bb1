import { AggregatorRegistry, Counter, Gauge, Histogram, Registry, Summary } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { foldFamilies, mergeFamilies } from '../../../../src/observe/exposition/merge-families.js';
import type { Labels, MetricFamily } from '../../../../src/observe/exposition/metric-family.js';
import { decodeBody, encodeBody } from '../../../../src/observe/exposition/metrics-body.js';
import { renderPage } from '../../../../src/observe/exposition/render-page.js';
import { SeriesLimit } from '../../../../src/observe/exposition/series-limit.js';
import { readRegistry } from '../../../../src/observe/metrics/read-registry.js';
import {
  counter,
  family,
  gauge,
  histogram,
  randomFrom,
  type SampleOf,
  samplesOf,
  summary,
} from '../../support/metric-families.js';

type Bodies = readonly (readonly MetricFamily[])[];

const merge = (live: Bodies, retired: Bodies = [], limit = new SeriesLimit(Infinity)) =>
  mergeFamilies(live, retired, limit);

/** Every sample of what is merged. */
const merged = (live: Bodies, retired: Bodies = []) => samplesOf(merge(live, retired));

const valuesOf = (live: Bodies, retired: Bodies = []) => Object.values(merged(live, retired));

/** As a body travels. */
const encoded = (families: readonly MetricFamily[]) => encodeBody(families);
const decoded = (text: string) => decodeBody(text)!;

/** The counts of workers that are gone, folded into one body. */
const fold = (bodies: Bodies, limit = new SeriesLimit(Infinity)) =>
  decoded(encoded(foldFamilies(bodies, limit)));

describe('a counter', () => {
  it('that only workers that are gone had is still there', () => {
    const families = merge([[gauge(1)]], [[counter(4, { a: 'x' })]]);
    expect(samplesOf(families)).toEqual({ 'g{}': 1, 'c{a="x"}': 4 });
    expect(families[1]).toMatchObject({ name: 'c', help: 'Help of c', type: 'counter' });
  });

  it.each([
    ['max', 4],
    ['min', 2],
    ['first', 4],
    ['average', 3],
  ])('of aggregator %s is aggregated as it says, over the living', (aggregator, expected) => {
    const bodies = [4, 2, 3].map((value) => [counter(value, {}, aggregator)]);
    expect(valuesOf(bodies, [[counter(100, {}, aggregator)]])).toEqual([expected]);
    expect(merge([], bodies)).toEqual([]);
  });
});

describe('a gauge', () => {
  it.each([
    ['sum', 9],
    ['first', 4],
    ['min', 2],
    ['max', 4],
    ['average', 3],
    ['unheard-of', 9],
  ])('of aggregator %s is aggregated as it says', (aggregator, expected) => {
    expect(valuesOf([4, 2, 3].map((value) => [gauge(value, aggregator)]))).toEqual([expected]);
  });

  it('is averaged over the workers that have the series', () => {
    const live = [[gauge(1, 'average', { a: 'x' })], [gauge(5, 'average', { a: 'y' })]];
    expect(merged(live)).toEqual({ 'g{a="x"}': 1, 'g{a="y"}': 5 });
  });

  it.each(['sum', 'first', 'min', 'max', 'average'])(
    'of aggregator %s is that of the living only',
    (aggregator) => {
      const retired = [[gauge(100, aggregator)], [gauge(-100, aggregator)]];
      expect(valuesOf([[gauge(7, aggregator)]], retired)).toEqual([7]);
    },
  );

  it('that only workers that are gone had is gone with them', () => {
    expect(merge([], [[gauge(1)]])).toEqual([]);
    expect(merged([[gauge(1, 'sum', { a: 'x' })]], [[gauge(2, 'sum', { a: 'y' })]])).toEqual({
      'g{a="x"}': 1,
    });
  });
});

describe('a summary', () => {
  it('adds sum and count, and averages the quantiles of the living', () => {
    const live = [[summary({ 0.5: 2 }, 10, 5)], [summary({ 0.5: 4 }, 20, 6)]];
    expect(merged(live, [[summary({ 0.5: 99 }, 30, 7)]])).toEqual({
      's{quantile="0.5"}': 3,
      's_sum{}': 60,
      's_count{}': 18,
    });
  });

  it('that only workers that are gone had keeps its sum and count without quantiles', () => {
    expect(merged([], [[summary({ 0.5: 9 }, 30, 7)]])).toEqual({ 's_sum{}': 30, 's_count{}': 7 });
  });

  it('averages its quantiles over the living where a worker that is gone came first', () => {
    const retired = [[summary({ 0.5: 100 }, 1, 1)], [summary({ 0.5: 100 }, 1, 1)]];
    const live = [[summary({ 0.5: 2 }, 1, 1)], [summary({ 0.5: 4 }, 1, 1)]];
    expect(merged(live, [fold(retired)])).toMatchObject({
      's{quantile="0.5"}': 3,
      's_count{}': 4,
    });
  });
});

describe('values that are no finite numbers', () => {
  it.each([
    ['counter', NaN, 1, NaN],
    ['counter', Infinity, 1, Infinity],
    ['gauge', Infinity, -Infinity, NaN],
    ['gauge', -Infinity, 1, -Infinity],
    ['gauge', NaN, 1, NaN],
  ] as const)('of a %s are added as numbers are: %d and %d', (type, a, b, sum) => {
    const one = (value: number) => [family(type, 'x', [[{}, value]])];
    expect(valuesOf([one(a), one(b)])).toEqual([sum]);
    expect(valuesOf([one(b), one(a)])).toEqual([sum]);
  });

  it('stay where they are: other series and other metrics are as they were', () => {
    const bad = family('counter', 'c', [
      [{ a: 'x' }, NaN],
      [{ a: 'y' }, 1],
    ]);
    expect(
      merged(
        [
          [bad, gauge(1)],
          [bad, gauge(2)],
        ],
        [[bad]],
      ),
    ).toEqual({
      'c{a="x"}': NaN,
      'c{a="y"}': 3,
      'g{}': 3,
    });
  });
});

describe('merged metrics', () => {
  it('are nothing where nothing was measured', () => {
    expect(merge([])).toEqual([]);
    expect(merge([[], []], [[]])).toEqual([]);
  });

  it('keep apart series whose labels only look alike', () => {
    const labels: Labels[] = [
      {},
      { a: '' },
      { a: 'b' },
      { ab: '' },
      { a: 'x', b: 'y' },
      { a: 'y', b: 'x' },
      { a: 'xb', b: 'y' },
      { a: 'x,b=y' },
      { a: 'x",b="y' },
      { a: 'x\\",b="y' },
      { a: 'x\n' },
      { a: 'x\\n' },
      { a: 'x', b: 'y', c: '' },
    ];
    const bodies = [labels.map((one) => counter(1, one))];
    expect(Object.values(merged(bodies, bodies))).toEqual(labels.map(() => 2));
  });

  it('take a number and its text for the same label', () => {
    expect(valuesOf([[counter(1, { n: 5 })], [counter(1, { n: '5' })]])).toEqual([2]);
  });

  it('keep HELP and TYPE of a metric that nobody has counted yet', () => {
    const empty = family('counter', 'c', []);
    expect(merge([[empty]])).toEqual([empty]);
    expect(valuesOf([[empty], [counter(3)]])).toEqual([3]);
    expect(valuesOf([[counter(3)], [empty]])).toEqual([3]);
    expect(valuesOf([[empty]], [[counter(3)]])).toEqual([3]);
  });

  it('are in the order of the workers, and what is only of those that are gone comes last', () => {
    const named = (name: string) => family('counter', name, [[{}, 1]]);
    const families = merge([[named('b'), named('a')], [named('c')]], [[named('x'), named('a')]]);
    expect(families.map(({ name }) => name)).toEqual(['b', 'a', 'c', 'x']);
  });

  it('leave what they were made of as it was', () => {
    const live = [
      [counter(1), histogram({ 1: 1, '+Inf': 2 }, 3), summary({ 0.5: 1 }, 1, 1)],
      [counter(2), histogram({ 2: 1, '+Inf': 2 }, 3), summary({ 0.5: 2 }, 1, 1)],
    ];
    const retired = [[counter(4), histogram({ 3: 1, '+Inf': 2 }, 3)]];
    const before = [...live, ...retired].map(encoded);
    const first = merged(live, retired);
    expect([...live, ...retired].map(encoded)).toEqual(before);
    expect(merged(live, retired)).toEqual(first);
  });
});

describe('merging as prom-client does', () => {
  const reading = {
    limit: new SeriesLimit(1_000),
    workerLabel: undefined,
    unordered: true,
    last: new WeakMap(),
    hung: new WeakSet<object>(),
    failed: (name: string) => {
      throw new Error(`${name} was left out`);
    },
  };

  function registryOf(seed: number): Registry {
    const registry = new Registry();
    const registers = [registry];
    const labelNames = ['a'] as const;
    const hits = new Counter({ name: 'hits_total', help: 'h', labelNames, registers });
    hits.inc({ a: 'x' }, seed);
    hits.inc({ a: `only${seed}` }, 1);
    for (const aggregator of ['sum', 'first', 'min', 'max', 'average', 'omit'] as const) {
      new Gauge({ name: `g_${aggregator}`, help: 'h', registers, aggregator }).set(seed * 2 - 3);
    }
    const seconds = new Histogram({
      name: 'seconds',
      help: 'h',
      labelNames,
      registers,
      buckets: [1, 2, 4],
    });
    for (let i = 0; i <= seed; i += 1) seconds.observe({ a: 'x' }, i);
    new Histogram({ name: 'idle_seconds', help: 'h', registers, buckets: [1] });
    return registry;
  }

  /** Sorted, and the labels too. */
  const linesOf = (text: string) =>
    text
      .split('\n')
      .filter(Boolean)
      .map((line) =>
        line.replace(/\{(.*)\}/, (_, labels: string) => labels.split(',').toSorted().join()),
      )
      .toSorted();

  it('gives the page that its own aggregator gives', async () => {
    const registries = [1, 2, 3].map(registryOf);
    const theirs = AggregatorRegistry.aggregate(
      await Promise.all(registries.map((registry) => registry.getMetricsAsJSON())),
    );
    const bodies = await Promise.all(registries.map((each) => readRegistry(each, reading)));
    const ours = merge(bodies.map((body) => decoded(encoded(body))));
    expect(linesOf(renderPage(ours))).toEqual(linesOf(await theirs.metrics()));
  });

  it('takes in a summary of prom-client', async () => {
    const body = async (values: number[]) => {
      const registry = new Registry();
      const one = new Summary({ name: 's', help: 'h', percentiles: [0.5], registers: [registry] });
      for (const value of values) one.observe(value);
      return readRegistry(registry, reading);
    };
    expect(merged([await body([2, 2]), await body([4, 4])], [await body([50])])).toEqual({
      's{quantile="0.5"}': 3,
      's_sum{}': 62,
      's_count{}': 5,
    });
  });
});

describe('folding', () => {
  it('of nothing is nothing', () => {
    expect(fold([])).toEqual([]);
    expect(fold([[], []])).toEqual([]);
  });
});

describe('a metric that another release has otherwise', () => {
  it('counts in the buckets of both: one that a release has not holds what its next lower one holds', () => {
    const old = histogram({ 1: 1, 5: 3, '+Inf': 4 }, 10);
    const young = histogram({ 2: 10, 5: 30, 10: 40, '+Inf': 50 }, 100);
    const expected = {
      'h_bucket{le="1"}': 1,
      'h_bucket{le="2"}': 11,
      'h_bucket{le="5"}': 33,
      'h_bucket{le="10"}': 43,
      'h_bucket{le="+Inf"}': 54,
      'h_sum{}': 110,
      'h_count{}': 54,
    };
    for (const [live, retired] of [
      [[[old], [young]], []],
      [[[young], [old]], []],
      [[[young]], [[old]]],
      [[[old]], [[young]]],
      [[], [[young], [old]]],
    ] as [Bodies, Bodies][]) {
      expect(merged(live, retired)).toEqual(expected);
      const [{ columns }] = merge(live, retired) as [MetricFamily];
      expect(columns.map(({ suffix, label }) => suffix + label)).toEqual([
        '_bucketle="1"',
        '_bucketle="2"',
        '_bucketle="5"',
        '_bucketle="10"',
        '_bucketle="+Inf"',
        '_sum',
        '_count',
      ]);
    }
  });

  it.each([
    [gauge(3), counter(5)],
    [histogram({ 1: 1, '+Inf': 1 }, 1), family('gauge', 'h', [[{}, 1]])],
    [counter(5), family('histogram', 'c', [[{ le: '+Inf' }, 1, '_bucket']])],
  ])('is what the first of the living says it is', (first, second) => {
    const other = { ...second, name: first.name };
    expect(merged([[first], [other]], [[other]])).toEqual(merged([[first]]));
    expect(merge([[other]], [[first]])).toEqual([other]);
  });

  it('is what the living say where those that are gone knew it by another aggregator', () => {
    const max = family('gauge', 'g', [[{}, 3]], 'max');
    expect(merged([[max], [gauge(1)]], [[gauge(9)]])).toEqual({ 'g{}': 3 });
  });

  it('is left out where all the living omit it, and shown where one does not', () => {
    expect(merge([[gauge(1, 'omit')], [gauge(2, 'omit')]])).toEqual([]);
    expect(merged([[gauge(1, 'omit')], [gauge(2, 'max')]])).toEqual({ 'g{}': 2 });
  });

  it('has the quantiles of both', () => {
    expect(merged([[summary({ 0.5: 4 }, 1, 1)]], [[summary({ 0.9: 8 }, 2, 2)]])).toEqual({
      's{quantile="0.5"}': 4,
      's_sum{}': 3,
      's_count{}': 3,
    });
  });

  it('has the mean of each quantile over the living that have it', () => {
    const live = [
      [summary({ 0.5: 4, 0.9: 10 }, 1, 1)],
      [summary({ 0.9: 8, 0.99: 20 }, 1, 1)],
      [summary({ 0.99: 40 }, 1, 1)],
    ];
    for (const bodies of [live, live.toReversed()]) {
      expect(merged(bodies)).toEqual({
        's{quantile="0.5"}': 4,
        's{quantile="0.9"}': 9,
        's{quantile="0.99"}': 30,
        's_sum{}': 3,
        's_count{}': 3,
      });
    }
  });

  it('is what the last of those that are gone says where none is alive: folding loses none of the living kind', () => {
    const old = family('counter', 'h', [[{}, 5]]);
    const young = histogram({ 1: 1, '+Inf': 2 }, 3);
    const live = [[young]];
    const retired = [[old], [young], [young]];
    const before = merged(live, retired);
    expect(before).toMatchObject({ 'h_count{}': 6, 'h_sum{}': 9 });
    for (const split of [1, 2, 3]) {
      const folded = [fold(retired.slice(0, split)), ...retired.slice(split)];
      expect(merged(live, folded)).toEqual(before);
    }
    expect(merge([], retired)).toMatchObject([{ type: 'histogram' }]);
    expect(merge([], retired.toReversed())).toMatchObject([{ type: 'counter' }]);
  });

  it('is left out of what it was by another aggregator', () => {
    const max = family('counter', 'c', [[{}, 3]], 'max');
    expect(merged([[counter(1)], [max]], [[max]])).toEqual({ 'c{}': 1 });
    expect(merged([[max], [counter(1)]], [[counter(9)]])).toEqual({ 'c{}': 3 });
  });

  it('has help and aggregator as the first of the living has them', () => {
    const old = { ...counter(1), help: 'old' };
    const young = { ...counter(1), help: 'young' };
    expect(merge([[young], [old]], [[old]])).toMatchObject([{ help: 'young' }]);
  });
});

describe('more series than a metric may have', () => {
  const series = (...names: string[]) =>
    family(
      'counter',
      'c',
      names.map((a): SampleOf => [{ a }, 1]),
    );

  it('are left out: those that were there first stay, and go on counting', () => {
    const limit = new SeriesLimit(2);
    const families = merge([[series('a', 'b', 'c')], [series('c', 'b', 'a')]], [], limit);
    expect(samplesOf(families)).toEqual({ 'c{a="a"}': 2, 'c{a="b"}': 2 });
    expect([...limit.counts]).toEqual([['c', 2]]);
  });

  it('are those of the living where workers that are gone had filled it', () => {
    const limit = new SeriesLimit(2);
    const families = merge([[series('new', 'a')]], [[series('a', 'b')]], limit);
    expect(samplesOf(families)).toEqual({ 'c{a="a"}': 2, 'c{a="b"}': 1 });
    expect([...limit.counts]).toEqual([['c', 1]]);
  });

  it('are counted by metric, and a metric that has room is whole', () => {
    const limit = new SeriesLimit(1);
    const other = { ...series('x'), name: 'd' };
    const third = { ...series('x', 'y', 'z'), name: 'e' };
    const families = merge([[series('a', 'b'), other, third]], [], limit);
    expect(Object.keys(samplesOf(families))).toEqual(['c{a="a"}', 'd{a="x"}', 'e{a="x"}']);
    expect(Object.fromEntries(limit.counts)).toEqual({ c: 1, e: 2 });
  });

  it('count each of the samples that a series has', () => {
    const limit = new SeriesLimit(1);
    const one = (a: string) => [histogram({ 1: 1, '+Inf': 1 }, 1, { a })];
    merge([one('a'), one('b')], [], limit);
    expect([...limit.counts]).toEqual([['h', 4]]);
  });

  it('of workers that are gone are the same after they were folded', () => {
    const retired = [[series('a', 'b')], [series('c', 'a')], [series('d', 'b')]];
    const live = [[series('b', 'e', 'c')]];
    const all = samplesOf(merge(live, retired, new SeriesLimit(3)));
    expect(all).toEqual({ 'c{a="a"}': 2, 'c{a="b"}': 3, 'c{a="c"}': 2 });
    for (const split of [1, 2, 3]) {
      const folded = fold(retired.slice(0, split), new SeriesLimit(3));
      const rest = [folded, ...retired.slice(split)];
      expect(samplesOf(merge(live, rest, new SeriesLimit(3)))).toEqual(all);
    }
  });
});

describe('totals', () => {
  /** A worker's counts, by kind, route and code. */
  type Counts = Map<string, number>;

  /** Bounds of the buckets of two releases. */
  const BOUNDS = [
    [1, 5],
    [2, 5, 10],
  ];

  function toFamilies(
    counts: Counts,
    release: number,
    random: (below: number) => number,
  ): MetricFamily[] {
    const of = (kind: string): [Labels, number][] =>
      [...counts]
        .filter(([key]) => key.startsWith(kind))
        .map(([key, value]) => {
          const [, route, code] = key.split(' ') as [string, string, string];
          return [random(2) === 0 ? { route, code } : { code, route }, value];
        });
    return [
      family('counter', 'c', of('counter')),
      family(
        'histogram',
        'h',
        of('histogram').flatMap(([labels, value]): SampleOf[] => [
          ...BOUNDS[release]!.map((le): SampleOf => [
            { le, ...labels },
            Math.floor((value * le) / 20),
            '_bucket',
          ]),
          [{ le: '+Inf', ...labels }, value, '_bucket'],
          [labels, value / 3, '_sum'],
          [labels, value, '_count'],
        ]),
      ),
      family(
        'summary',
        's',
        of('summary').flatMap(([labels, value]): SampleOf[] => [
          [{ quantile: 0.5, ...labels }, random(100)],
          [labels, value * 0.7, '_sum'],
          [labels, value, '_count'],
        ]),
      ),
      gauge(random(100)),
    ];
  }

  const isTotal = (key: string) => !key.startsWith('g') && !key.includes('quantile');

  /** Cumulative counts of a series that fall from one bucket to the next. */
  function disorderOf(families: readonly MetricFamily[]): unknown[] {
    return families.flatMap(({ columns, series }) =>
      [...series.values()].flatMap((row) => {
        const buckets = row.filter((_, i) => columns[i]!.suffix === '_bucket') as number[];
        return buckets.filter((count, i) => i > 0 && count < buckets[i - 1]!);
      }),
    );
  }

  it.each([1, 2, 3, 4, 5, 6, 7, 8])(
    'never fall while workers count, die, are replaced by another release and are folded (seed %d)',
    (seed) => {
      const random = randomFrom(seed);
      const live = Array.from({ length: 4 }, () => ({ counts: new Map() as Counts, release: 0 }));
      let retired: string[] = [];
      const truth = new Map<string, number>();
      let before: Record<string, number> = {};
      let folds = 0;

      for (let step = 0; step < 300; step += 1) {
        const action = random(20);
        const worker = live[random(live.length)]!;
        if (action < 13) {
          const kind = ['counter', 'histogram', 'summary'][random(3)]!;
          const key = `${kind} /r${random(4)} ${200 + random(3)}`;
          // Summands that are not whole numbers, as in most sums.
          const by = kind === 'counter' ? random(1_000) / 7 : random(50);
          worker.counts.set(key, (worker.counts.get(key) ?? 0) + by);
          truth.set(kind, (truth.get(kind) ?? 0) + by);
        } else if (action < 17) {
          retired.push(encoded(toFamilies(worker.counts, worker.release, random)));
          worker.counts = new Map();
          worker.release = random(2);
        } else if (action < 18) {
          live.push(live.shift()!);
        } else if (retired.length > 0) {
          const count = 1 + random(retired.length);
          const folded = fold(retired.slice(0, count).map(decoded));
          retired = [encoded(folded), ...retired.slice(count)];
          folds += 1;
        }

        const families = merge(
          live.map(({ counts, release }) => toFamilies(counts, release, random)),
          retired.map(decoded),
        );
        const now = samplesOf(families);
        const fallen = Object.keys(before).filter(
          (key) => isTotal(key) && !(now[key]! >= before[key]!),
        );
        expect(fallen).toEqual([]);
        expect(disorderOf(families)).toEqual([]);
        const sumOf = (prefix: string) =>
          Object.entries(now)
            .filter(([key]) => key.startsWith(prefix) && isTotal(key))
            .reduce((sum, [, value]) => sum + value, 0);
        expect(sumOf('h_count')).toBe(truth.get('histogram') ?? 0);
        expect(sumOf('s_count')).toBe(truth.get('summary') ?? 0);
        expect(sumOf('c{')).toBeCloseTo(truth.get('counter') ?? 0, 4);
        expect(sumOf('h_sum')).toBeCloseTo((truth.get('histogram') ?? 0) / 3, 4);
        before = now;
      }
      expect([retired.length > 0, folds > 5]).toEqual([true, true]);
    },
  );
});

describe('sums of fractions', () => {
  // A fall by the last bit of a double is a restart of the counter to Prometheus.
  it.each([1, 1e3, 2 ** 29, 1e9, 1e12, 2 ** 45])(
    'are the same in every order and grouping in which workers die and are folded, of about %d',
    (scale) => {
      const random = randomFrom(scale);
      const fraction = () => (random(1e9) / 1e9) * scale;
      const bodies = Array.from({ length: 9 }, () => [
        counter(fraction()),
        histogram({ 1: random(10), '+Inf': 10 + random(10) }, fraction()),
        summary({}, fraction(), 1),
      ]);
      const expected = merged(bodies);
      for (let round = 0; round < 100; round += 1) {
        const order = bodies.toSorted(() => random(3) - 1);
        const live = order.slice(0, random(3));
        let retired: Bodies = order.slice(live.length);
        for (let folds = random(5); folds > 0 && retired.length > 1; folds -= 1) {
          const count = 1 + random(retired.length);
          retired = [fold(retired.slice(0, count)), ...retired.slice(count)];
        }
        expect(merged(live, retired)).toEqual(expected);
      }
    },
  );

  it('are shown as they were counted, without the rounding inside', () => {
    expect(valuesOf([[counter(0.1)], [counter(0.2)]], [[counter(1 / 8)]])).toEqual([0.425]);
  });

  it('of what does not accumulate carry nothing along when they are folded', () => {
    for (const bodies of [
      [[counter(1.5)], [counter(2.5)]],
      [[counter(NaN)], [counter(0.1)]],
      [[counter(Infinity)], [counter(0.1)]],
    ]) {
      expect(foldFamilies(bodies, new SeriesLimit(10))).toHaveLength(1);
    }
  });
});
