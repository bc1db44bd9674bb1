import fc from 'fast-check';
import { AggregatorRegistry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import type { MetricJson } from '../../../../src/contract/snapshot/types.js';
import {
  addUp,
  decodeMetrics,
  encodeMetrics,
  labelWorkers,
} from '../../../../src/contract/snapshot/metrics-body.js';
import { counter, histogram, metric, samplesOf } from '../../support/metric-json.js';

const roundTrip = (...metrics: MetricJson[]) => decodeMetrics(encodeMetrics(metrics));

describe('an encoded body', () => {
  it.each([0, -1, 0.125, 1e-9, 1e300, Number.MAX_SAFE_INTEGER, NaN, Infinity, -Infinity])(
    'keeps the gauge %d',
    (value) => {
      const gauge = metric('gauge', 'g', [[{ path: '/é"\\\n' }, value]]);
      expect(roundTrip(gauge)).toEqual([gauge]);
    },
  );

  it.each([NaN, Infinity, 2 ** 53, 1 / 8])('keeps the count %d', (value) => {
    expect(roundTrip(counter(value), histogram({ 1: 1, '+Inf': 2 }, value))).toEqual([
      counter(value),
      histogram({ 1: 1, '+Inf': 2 }, value),
    ]);
  });

  it('sums a metric that names no aggregator, and gives a value its labels', () => {
    const { aggregator: _, ...bare } = metric('counter', 'c', []);
    expect(roundTrip({ ...bare, values: [{ value: 1 }] })).toEqual([counter(1)]);
  });

  it.each(['', '{', '{}', 'null', '"text"', '[null]', '[{}]'])(
    'is no metrics if a process has sent %s',
    (text) => {
      expect(decodeMetrics(text)).toEqual([]);
      expect(decodeMetrics(addUp(encodeMetrics([counter(2)]), text))).toEqual([counter(2)]);
    },
  );
});

it("the label of the worker is on every value, and the app's own label of that name is exported_worker", () => {
  const metrics = [counter(1), counter(2, { worker: 'ann', a: 'x' })];
  expect(metrics.map((each) => samplesOf(labelWorkers([each], 0)))).toEqual([
    { 'c{worker="0"}': 1 },
    { 'c{a="x",exported_worker="ann",worker="0"}': 2 },
  ]);
  expect(labelWorkers(metrics, undefined)).toBe(metrics);
});

/** The sums of processes that ended with these metrics. */
const retired = (...ended: readonly MetricJson[][]) =>
  decodeMetrics(ended.map(encodeMetrics).reduce<string | undefined>(addUp, undefined) ?? '');

describe('what ended processes have counted', () => {
  it('is their sum, series by series, whatever the order of the labels', () => {
    const first = metric('counter', 'c', [
      [{ a: 1, b: 2 }, 1],
      [{ a: 2, b: 2 }, 2],
    ]);
    expect(samplesOf(retired([first], [counter(4, { b: 2, a: 1 })]))).toEqual({
      'c{b="2",a="1"}': 5,
      'c{a="2",b="2"}': 2,
    });
    expect(
      retired([histogram({ 1: 1, '+Inf': 2 }, 3)], [histogram({ 1: 1, '+Inf': 2 }, 3)]),
    ).toEqual([histogram({ 1: 2, '+Inf': 4 }, 6)]);
  });

  it('has nothing that describes a running process', () => {
    const summary = (quantiles: object[]) =>
      metric('summary', 's', [
        ...quantiles.map((labels) => [labels, 5] as const),
        [{}, 3, '_sum'],
        [{}, 2, '_count'],
      ] as never);
    const max = { ...counter(3), aggregator: 'max' };
    const ended = [metric('gauge', 'g', [[{}, 1]]), max, summary([{ quantile: 0.5 }])];
    expect(retired(ended)).toEqual([summary([])]);
  });

  it('has the newer histogram if a release has changed the buckets', () => {
    const [old, young] = [histogram({ 1: 5, '+Inf': 5 }, 5), histogram({ 2: 1, '+Inf': 1 }, 1)];
    expect(retired([old, counter(1)], [young, counter(1)])).toEqual([young, counter(2)]);
    expect(retired([old], [{ ...young, values: [] }])).toEqual([old]);
  });

  const step = fc.record({
    slot: fc.nat(3),
    dies: fc.boolean(),
    // Fractions of one size: their sums differ in the last bit if they are added in another order.
    by: fc.integer({ min: 1, max: 1e9 }).map((n) => n / 997),
  });

  it('makes no total fall when a worker dies, added to what the others count', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const live = [0, 0, 0, 0];
        const ended = new Map<number, string>();
        let before = 0;
        for (const { slot, dies, by } of steps) {
          if (dies) ended.set(slot, addUp(ended.get(slot), encodeMetrics([counter(live[slot]!)])));
          live[slot] = dies ? 0 : live[slot]! + by;
          const bodies = [...live.map((n) => encodeMetrics([counter(n)])), ...ended.values()];
          const page = AggregatorRegistry.aggregate(bodies.map(decodeMetrics) as never);
          const [total] = (await page.getMetricsAsJSON()) as unknown as MetricJson[];
          expect(total!.values[0]!.value).toBeGreaterThanOrEqual(before);
          before = total!.values[0]!.value;
        }
      }),
      { numRuns: 200 },
    );
  });
});
