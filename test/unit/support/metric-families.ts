import {
  type Column,
  type Labels,
  labelText,
  type MetricFamily,
  type MetricType,
  type Row,
  sortedLabelText,
} from '../../../src/observe/exposition/metric-family.js';

/** Labels, value, and where it is not the metric's own name, what comes behind it. */
export type SampleOf = readonly [Labels, number, string?];

/** A metric of these samples, as a worker reads it from its registry. */
export function family(
  type: MetricType,
  name: string,
  samples: readonly SampleOf[],
  aggregator = 'sum',
): MetricFamily {
  const columns: Column[] = [];
  const series = new Map<string, Row>();
  for (const [labels, value, suffix = ''] of samples) {
    const { le, quantile, ...own } = labels;
    const label = labelText({
      ...(le !== undefined && { le }),
      ...(quantile !== undefined && { quantile }),
    });
    let at = columns.findIndex((each) => each.suffix === suffix && each.label === label);
    if (at === -1) at = columns.push({ suffix, label }) - 1;
    const text = sortedLabelText(own);
    const row = series.get(text) ?? [];
    row[at] = value;
    series.set(text, row);
  }
  for (const row of series.values()) {
    for (let i = 0; i < columns.length; i += 1) row[i] ??= null;
  }
  return { name, help: `Help of ${name}`, type, aggregator, columns, series };
}

export const counter = (value: number, labels: Labels = {}, aggregator = 'sum') =>
  family('counter', 'c', [[labels, value]], aggregator);

export const gauge = (value: number, aggregator = 'sum', labels: Labels = {}) =>
  family('gauge', 'g', [[labels, value]], aggregator);

/** A histogram of one series, from its cumulative counts by upper bound. */
export const histogram = (
  counts: Readonly<Record<string, number>>,
  sum: number,
  labels: Labels = {},
): MetricFamily => {
  const bounds = Object.keys(counts).toSorted((a, b) => boundOf(a) - boundOf(b));
  return family('histogram', 'h', [
    ...bounds.map((le): SampleOf => [{ ...labels, le }, counts[le]!, '_bucket']),
    [labels, sum, '_sum'],
    [labels, counts['+Inf']!, '_count'],
  ]);
};

const boundOf = (le: string) => (le === '+Inf' ? Infinity : Number(le));

/** A summary of one series. */
export const summary = (
  quantiles: Readonly<Record<string, number>>,
  sum: number,
  count: number,
): MetricFamily =>
  family('summary', 's', [
    ...Object.entries(quantiles).map(([quantile, value]): SampleOf => [{ quantile }, value]),
    [{}, sum, '_sum'],
    [{}, count, '_count'],
  ]);

/** Every sample by its name and labels as the page has them; a second one of a name throws. */
export function samplesOf(families: readonly MetricFamily[]): Record<string, number> {
  const all = families.flatMap(({ name, columns, series }) =>
    [...series].flatMap(([labels, row]) =>
      columns.flatMap(({ suffix, label }, i): [string, number][] => {
        const value = row[i];
        const inner = [label, labels].filter(Boolean).join(',');
        return value === null || value === undefined ? [] : [[`${name}${suffix}{${inner}}`, value]];
      }),
    ),
  );
  const samples = Object.fromEntries(all);
  if (Object.keys(samples).length !== all.length) throw new Error('two samples of one name');
  return samples;
}

/** mulberry32: the same numbers in every run of one seed. */
export function randomFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}
