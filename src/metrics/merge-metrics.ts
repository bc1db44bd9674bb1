import type { MetricJson, Sample } from './metric-json.js';

/** How the values of one series become one value. Names and rules are prom-client's. */
const AGGREGATORS: Readonly<Record<string, (values: readonly number[]) => number>> = {
  sum: (values) => values.reduce((sum, value) => sum + value, 0),
  first: (values) => values[0]!,
  min: (values) => Math.min(...values),
  max: (values) => Math.max(...values),
  average: (values) => values.reduce((sum, value) => sum + value, 0) / values.length,
};

/**
 * Grid on which values that accumulate are added, in units of a value: 2^-24.
 * Sums of such values are exact in whatever order and grouping they are made.
 * Without it the sum of the same floats differs in its last bit when a body is
 * folded, and Prometheus takes the smallest fall of a counter for a restart.
 */
const GRID = 2 ** 24;

/** Above it a double has no room for the grid. Whole numbers need none. */
const MAX_ON_GRID = 2 ** 53 / GRID;

/** Metrics with this aggregator mean nothing for several processes. */
const OMIT = 'omit';

/**
 * Metrics of several workers as those of one. What workers that are gone had
 * counted stays in: a counter, a histogram and the sum and count of a summary
 * never fall. Of a gauge only the living count.
 */
export function mergeMetrics(
  live: readonly (readonly MetricJson[])[],
  retired: readonly (readonly MetricJson[])[],
): MetricJson[] {
  const merged = new Map<string, MergedMetric>();
  for (const metrics of live) for (const metric of metrics) add(merged, metric, false);
  for (const metrics of retired) for (const metric of metrics) add(merged, metric, true);
  return [...merged.values()].map(({ metric, series }) => ({
    ...metric,
    values: [...series.values()].map(({ sample, values, aggregate }) => ({
      ...sample,
      value: aggregate(values),
    })),
  }));
}

interface MergedMetric {
  readonly metric: MetricJson;
  readonly series: Map<
    string,
    { sample: Sample; values: number[]; aggregate: (values: readonly number[]) => number }
  >;
}

function add(merged: Map<string, MergedMetric>, metric: MetricJson, retired: boolean): void {
  if (metric.aggregator === OMIT) return;
  let entry = merged.get(metric.name);
  for (const sample of metric.values) {
    const accumulates = doesAccumulate(metric, sample);
    if (retired && !accumulates) continue;
    if (entry === undefined) merged.set(metric.name, (entry = { metric, series: new Map() }));
    const key = seriesKey(sample);
    const value = accumulates ? onGrid(sample.value) : sample.value;
    const series = entry.series.get(key);
    if (series !== undefined) {
      series.values.push(value);
      continue;
    }
    const rule = accumulates ? 'sum' : isQuantile(metric, sample) ? 'average' : metric.aggregator;
    const aggregate = AGGREGATORS[rule ?? 'sum'] ?? AGGREGATORS['sum']!;
    entry.series.set(key, { sample, values: [value], aggregate });
  }
  // A metric without a sample still has its HELP and TYPE.
  if (entry === undefined && !retired) merged.set(metric.name, { metric, series: new Map() });
}

/** Whether a value only ever grows, so that the values of the dead belong to the total. */
function doesAccumulate(metric: MetricJson, sample: Sample): boolean {
  if ((metric.aggregator ?? 'sum') !== 'sum') return false;
  return metric.type === 'summary' ? !isQuantile(metric, sample) : metric.type !== 'gauge';
}

function onGrid(value: number): number {
  return Math.abs(value) < MAX_ON_GRID ? Math.floor(value * GRID) / GRID : value;
}

/** Quantiles of several workers cannot be added; their mean is the least wrong. */
function isQuantile(metric: MetricJson, sample: Sample): boolean {
  return metric.type === 'summary' && 'quantile' in sample.labels;
}

/** Equal for equal labels, in whatever order a worker wrote them. */
function seriesKey({ metricName = '', labels }: Sample): string {
  const names = Object.keys(labels);
  if (names.length > 1) names.sort();
  let key = metricName;
  for (const name of names) key += `\u0000${name}\u0001${labels[name]}`;
  return key;
}
