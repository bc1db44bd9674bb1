import { AggregatorRegistry, Counter, Gauge, Histogram, Registry, Summary } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { mergeMetrics } from '../../src/metrics/merge-metrics.js';
import {
  decodeMetrics,
  encodeMetrics,
  type MetricJson,
  readRegistry,
  type Sample,
} from '../../src/metrics/metric-json.js';

type Labels = Sample['labels'];

const metric = (
  type: MetricJson['type'],
  name: string,
  values: readonly (readonly [Labels, number, string?])[],
  aggregator?: string,
): MetricJson => ({
  name,
  help: `Help of ${name}`,
  type,
  ...(aggregator !== undefined && { aggregator }),
  values: values.map(([labels, value, suffix]) => ({
    labels,
    value,
    ...(suffix !== undefined && { metricName: name + suffix }),
  })),
});

const counter = (value: number, labels: Labels = {}, aggregator = 'sum') =>
  metric('counter', 'c', [[labels, value]], aggregator);
const gauge = (value: number, aggregator?: string, labels: Labels = {}) =>
  metric('gauge', 'g', [[labels, value]], aggregator);

/** Every sample as text, so that a missing or a second one shows. */
function samples(metrics: readonly MetricJson[]): Record<string, number> {
  const all: [string, number][] = metrics.flatMap(({ name, values }) =>
    values.map(({ metricName = name, labels, value }): [string, number] => [
      metricName + JSON.stringify(Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1))),
      value,
    ]),
  );
  expect(new Set(all.map(([key]) => key)).size).toBe(all.length);
  return Object.fromEntries(all);
}

const valueOf = (metrics: readonly MetricJson[]) => Object.values(samples(metrics));

describe('a counter', () => {
  it('is the sum over the workers, series by series', () => {
    const merged = mergeMetrics(
      [
        [
          metric('counter', 'c', [
            [{ a: 'x' }, 1],
            [{ a: 'y' }, 10],
          ]),
        ],
        [
          metric('counter', 'c', [
            [{ a: 'y' }, 20],
            [{ a: 'z' }, 300],
          ]),
        ],
      ],
      [],
    );
    expect(samples(merged)).toEqual({
      'c[["a","x"]]': 1,
      'c[["a","y"]]': 30,
      'c[["a","z"]]': 300,
    });
  });

  it('keeps what workers that are gone had counted', () => {
    expect(
      valueOf(mergeMetrics([[counter(1)], [counter(2)]], [[counter(4)], [counter(8)]])),
    ).toEqual([15]);
  });

  it('that only workers that are gone had is still there', () => {
    const merged = mergeMetrics([[gauge(1)]], [[counter(4, { a: 'x' })]]);
    expect(samples(merged)).toEqual({ 'g[]': 1, 'c[["a","x"]]': 4 });
    expect(merged[1]).toMatchObject({ name: 'c', help: 'Help of c', type: 'counter' });
  });

  it('has a series that only a worker that is gone had', () => {
    const merged = mergeMetrics([[counter(1, { a: 'x' })]], [[counter(4, { a: 'y' })]]);
    expect(samples(merged)).toEqual({ 'c[["a","x"]]': 1, 'c[["a","y"]]': 4 });
  });

  it('without an aggregator is summed', () => {
    const plain = metric('counter', 'c', [[{}, 2]]);
    expect(valueOf(mergeMetrics([[plain], [plain]], [[plain]]))).toEqual([6]);
  });

  it('of zero is present', () => {
    expect(valueOf(mergeMetrics([[counter(0)], [counter(0)]], []))).toEqual([0]);
    expect(valueOf(mergeMetrics([], [[counter(0)]]))).toEqual([0]);
  });
});

describe('a gauge', () => {
  it.each([
    ['sum', 9],
    ['first', 4],
    ['min', 2],
    ['max', 4],
    ['average', 3],
    [undefined, 9],
    ['unheard-of', 9],
  ])('of aggregator %s is aggregated as it says', (aggregator, expected) => {
    const live = [4, 2, 3].map((value) => [gauge(value, aggregator)]);
    expect(valueOf(mergeMetrics(live, []))).toEqual([expected]);
  });

  it('of aggregator omit is left out', () => {
    expect(mergeMetrics([[gauge(1, 'omit'), counter(1)]], [[gauge(1, 'omit')]])).toEqual([
      counter(1),
    ]);
  });

  it('is averaged over the workers that have the series', () => {
    const merged = mergeMetrics(
      [[gauge(1, 'average', { a: 'x' })], [gauge(5, 'average', { a: 'y' })]],
      [],
    );
    expect(samples(merged)).toEqual({ 'g[["a","x"]]': 1, 'g[["a","y"]]': 5 });
  });

  it.each(['sum', 'first', 'min', 'max', 'average'])(
    'of aggregator %s is that of the living only',
    (aggregator) => {
      const retired = [[gauge(100, aggregator)], [gauge(-100, aggregator)]];
      expect(valueOf(mergeMetrics([[gauge(7, aggregator)]], retired))).toEqual([7]);
    },
  );

  it('that only workers that are gone had is gone with them', () => {
    expect(mergeMetrics([], [[gauge(1)]])).toEqual([]);
    const merged = mergeMetrics([[gauge(1, 'sum', { a: 'x' })]], [[gauge(2, 'sum', { a: 'y' })]]);
    expect(samples(merged)).toEqual({ 'g[["a","x"]]': 1 });
  });

  it.each([0, -5, NaN, Infinity, -Infinity])('of %d is present', (value) => {
    expect(valueOf(mergeMetrics([[gauge(value)]], []))).toEqual([value]);
  });
});

describe('a histogram', () => {
  const histogram = (small: number, all: number, sum: number) =>
    metric(
      'histogram',
      'h',
      [
        [{ le: 1 }, small, '_bucket'],
        [{ le: '+Inf' }, all, '_bucket'],
        [{}, sum, '_sum'],
        [{}, all, '_count'],
      ],
      'sum',
    );

  it('is summed bucket by bucket, with what workers that are gone had counted', () => {
    const merged = mergeMetrics(
      [[histogram(1, 2, 10)], [histogram(0, 3, 20)]],
      [[histogram(4, 5, 30)]],
    );
    expect(samples(merged)).toEqual({
      'h_bucket[["le",1]]': 5,
      'h_bucket[["le","+Inf"]]': 10,
      'h_sum[]': 60,
      'h_count[]': 10,
    });
  });

  it('of nothing keeps its zero buckets', () => {
    expect(valueOf(mergeMetrics([[histogram(0, 0, 0)]], []))).toEqual([0, 0, 0, 0]);
  });
});

describe('a summary', () => {
  const summary = (p50: number, sum: number, count: number) =>
    metric(
      'summary',
      's',
      [
        [{ quantile: 0.5 }, p50],
        [{}, sum, '_sum'],
        [{}, count, '_count'],
      ],
      'sum',
    );

  it('adds sum and count, and averages the quantiles of the living', () => {
    const merged = mergeMetrics([[summary(2, 10, 5)], [summary(4, 20, 6)]], [[summary(99, 30, 7)]]);
    expect(samples(merged)).toEqual({ 's[["quantile",0.5]]': 3, 's_sum[]': 60, 's_count[]': 18 });
  });

  it('that only workers that are gone had keeps its sum and count without quantiles', () => {
    expect(samples(mergeMetrics([], [[summary(9, 30, 7)]]))).toEqual({
      's_sum[]': 30,
      's_count[]': 7,
    });
  });
});

describe('merged metrics', () => {
  it('are nothing where nothing was measured', () => {
    expect(mergeMetrics([], [])).toEqual([]);
    expect(mergeMetrics([[], []], [[]])).toEqual([]);
  });

  it('know a series by its labels, in whatever order a worker wrote them', () => {
    const merged = mergeMetrics(
      [[counter(1, { a: '1', b: '2' })], [counter(10, { b: '2', a: '1' })]],
      [[counter(100, { b: '2', a: '1' })]],
    );
    expect(valueOf(merged)).toEqual([111]);
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
      { a: 'x', b: 'y', c: '' },
    ];
    const merged = mergeMetrics([labels.map((one) => counter(1, one))], []);
    expect(Object.keys(samples(merged))).toHaveLength(labels.length);
  });

  it('take a number and its text for the same label', () => {
    expect(valueOf(mergeMetrics([[counter(1, { le: 5 })], [counter(1, { le: '5' })]], []))).toEqual(
      [2],
    );
  });

  it('keep HELP and TYPE of a metric that nobody has counted yet', () => {
    const empty = metric('counter', 'c', [], 'sum');
    expect(mergeMetrics([[empty]], [])).toEqual([empty]);
    expect(valueOf(mergeMetrics([[empty], [counter(3)]], []))).toEqual([3]);
    expect(valueOf(mergeMetrics([[empty]], [[counter(3)]]))).toEqual([3]);
  });

  it('leave what they were made of as it was', () => {
    const live = [[counter(1)], [counter(2)]];
    const retired = [[counter(4)]];
    const before = JSON.stringify([live, retired]);
    const first = mergeMetrics(live, retired);
    expect(JSON.stringify([live, retired])).toBe(before);
    expect(mergeMetrics(live, retired)).toEqual(first);
  });
});

describe('merging as prom-client does', () => {
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

  const linesOf = (text: string) => text.split('\n').filter(Boolean).toSorted();

  it('gives the page that its own aggregator gives', async () => {
    const registries = [1, 2, 3].map(registryOf);
    const theirs = AggregatorRegistry.aggregate(
      await Promise.all(registries.map((registry) => registry.getMetricsAsJSON())),
    );
    const ours = new Registry();
    const bodies = await Promise.all(registries.map((registry) => readRegistry(registry)));
    for (const one of mergeMetrics(
      bodies.map((body) => decodeMetrics(encodeMetrics(body))),
      [],
    )) {
      ours.registerMetric({ ...one, get: async () => one } as never);
    }
    expect(linesOf(await ours.metrics())).toEqual(linesOf(await theirs.metrics()));
  });

  it('takes in a summary of prom-client', async () => {
    const body = async (values: number[]) => {
      const registry = new Registry();
      const summary = new Summary({
        name: 's',
        help: 'h',
        percentiles: [0.5],
        registers: [registry],
      });
      for (const value of values) summary.observe(value);
      return readRegistry(registry);
    };
    const merged = mergeMetrics([await body([2, 2]), await body([4, 4])], [await body([50])]);
    expect(samples(merged)).toEqual({ 's[["quantile",0.5]]': 3, 's_sum[]': 62, 's_count[]': 5 });
  });
});

describe('folding', () => {
  const fold = (bodies: readonly string[]) =>
    encodeMetrics(mergeMetrics([], bodies.map(decodeMetrics)));

  const body = (n: number) =>
    encodeMetrics([
      counter(n, { a: `x${n % 3}` }),
      gauge(n),
      metric(
        'summary',
        's',
        [
          [{ quantile: 0.9 }, n],
          [{}, n * 2, '_sum'],
          [{}, 1, '_count'],
        ],
        'sum',
      ),
    ]);

  it('and then merging counts the same as merging all', () => {
    const live = [decodeMetrics(body(1000))];
    const retired = Array.from({ length: 9 }, (_, n) => body(n));
    const all = mergeMetrics(live, retired.map(decodeMetrics));
    for (const split of [0, 1, 5, 9]) {
      const folded = [fold(retired.slice(0, split)), ...retired.slice(split)];
      expect(samples(mergeMetrics(live, folded.map(decodeMetrics)))).toEqual(samples(all));
    }
    const twice = [fold([fold(retired.slice(0, 4)), ...retired.slice(4)])];
    expect(samples(mergeMetrics(live, twice.map(decodeMetrics)))).toEqual(samples(all));
  });

  it('of nothing is nothing', () => {
    expect(decodeMetrics(fold([]))).toEqual([]);
    expect(decodeMetrics(fold(['', '']))).toEqual([]);
  });
});

describe('totals', () => {
  /** mulberry32: the same numbers in every run of one seed. */
  function randomFrom(seed: number): (below: number) => number {
    let state = seed;
    return (below) => {
      state = (state + 0x6d2b79f5) | 0;
      let t = Math.imul(state ^ (state >>> 15), 1 | state);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * below);
    };
  }

  /** A worker's own counts, by series. */
  type Counts = Map<string, number>;

  function toMetrics(counts: Counts, random: (below: number) => number): MetricJson[] {
    const of = (kind: string): (readonly [Labels, number])[] =>
      [...counts]
        .filter(([key]) => key.startsWith(kind))
        .map(([key, value]) => {
          const [, route, code] = key.split(' ');
          return [
            random(2) === 0 ? { route: route!, code: code! } : { code: code!, route: route! },
            value,
          ];
        });
    return [
      metric('counter', 'c', of('counter'), 'sum'),
      metric(
        'histogram',
        'h',
        of('histogram').flatMap(([labels, value]) => [
          [{ le: 1, ...labels }, Math.floor(value / 2), '_bucket'] as const,
          [{ le: '+Inf', ...labels }, value, '_bucket'] as const,
          [labels, value * 3, '_sum'] as const,
          [labels, value, '_count'] as const,
        ]),
        'sum',
      ),
      metric(
        'summary',
        's',
        of('summary').flatMap(([labels, value]) => [
          [{ quantile: 0.5, ...labels }, random(100)] as const,
          [labels, value * 7, '_sum'] as const,
          [labels, value, '_count'] as const,
        ]),
        'sum',
      ),
      gauge(random(100)),
    ];
  }

  const isTotal = (key: string) => !key.startsWith('g') && !key.includes('quantile');

  it.each([1, 2, 3, 4, 5])(
    'never fall while workers count, die, are replaced and are folded (seed %d)',
    (seed) => {
      const random = randomFrom(seed);
      let live: Counts[] = [new Map(), new Map(), new Map()];
      let retired: string[] = [];
      const truth = new Map<string, number>();
      let before: Record<string, number> = {};

      for (let step = 0; step < 300; step += 1) {
        const action = random(10);
        const index = random(live.length);
        if (action < 7) {
          const kind = ['counter', 'histogram', 'summary'][random(3)]!;
          const key = `${kind} /r${random(4)} ${200 + random(3)}`;
          const by = 2 * random(5);
          live[index]!.set(key, (live[index]!.get(key) ?? 0) + by);
          truth.set(kind, (truth.get(kind) ?? 0) + by);
        } else if (action < 9) {
          retired.push(encodeMetrics(toMetrics(live[index]!, random)));
          live = live.with(index, new Map());
        } else if (retired.length > 0) {
          const count = 1 + random(retired.length);
          const folded = mergeMetrics([], retired.slice(0, count).map(decodeMetrics));
          retired = [encodeMetrics(folded), ...retired.slice(count)];
        }

        const merged = mergeMetrics(
          live.map((counts) => toMetrics(counts, random)),
          retired.map(decodeMetrics),
        );
        const now = samples(merged);
        const fallen = Object.keys(before).filter(
          (key) => isTotal(key) && !(now[key]! >= before[key]!),
        );
        expect(fallen).toEqual([]);
        const sumOf = (prefix: string) =>
          Object.entries(now)
            .filter(([key]) => key.startsWith(prefix) && isTotal(key))
            .reduce((sum, [, value]) => sum + value, 0);
        expect([sumOf('c['), sumOf('h_count'), sumOf('h_sum'), sumOf('s_count')]).toEqual([
          truth.get('counter') ?? 0,
          truth.get('histogram') ?? 0,
          3 * (truth.get('histogram') ?? 0),
          truth.get('summary') ?? 0,
        ]);
        before = now;
      }
      expect(retired.length).toBeGreaterThan(0);
    },
  );
});

describe('sums of fractions', () => {
  // A fall by the last bit of a double is a restart of the counter to Prometheus.
  it('are the same in every order and grouping of the workers', () => {
    const bodies = [0.1, 0.2, 0.3, 1e-7, 12_345.678_9, 1 / 3].map((value) => [counter(value)]);
    const total = (live: typeof bodies, retired: typeof bodies) =>
      mergeMetrics(live, retired)[0]!.values[0]!.value;

    const sums = bodies.flatMap((_, i) => {
      const rotated = [...bodies.slice(i), ...bodies.slice(0, i)];
      const folded = mergeMetrics([], rotated.slice(2));
      return [
        total(rotated, []),
        total(rotated.toReversed(), []),
        total(rotated.slice(0, 2), rotated.slice(2)),
        total(rotated.slice(0, 2), [folded]),
        total(rotated.slice(0, 1), [folded, rotated[1]!]),
      ];
    });

    expect(new Set(sums).size).toBe(1);
    expect(sums[0]).toBeCloseTo(12_346.612_233_4, 5);
  });

  it('keep whole numbers of any size as they are', () => {
    const large = 2 ** 52 + 1;
    expect(mergeMetrics([[counter(large)]], [])[0]!.values[0]!.value).toBe(large);
  });
});
