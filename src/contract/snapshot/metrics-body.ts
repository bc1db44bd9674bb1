import type { MetricJson, MetricValue } from './prometheus.js';

/** Types whose values only increase, except the quantiles of a summary. */
const COUNTING: ReadonlySet<string> = new Set(['counter', 'histogram', 'summary']);

/**
 * Counts are rounded to multiples of 1 / PRECISION. Up to 8e9, their sum is exact in any order.
 * Unrounded sums could fall in the last bit, and Prometheus would see a counter reset.
 */
const PRECISION = 2 ** 20;

/** Metrics of one process as text, for other processes. */
export function encodeMetrics(metrics: readonly MetricJson[]): string {
  return JSON.stringify(
    // Both clients reject a metric without an aggregator. A custom metric class of the app may have none.
    metrics.map(({ name, help, type, aggregator = 'sum', values }) => {
      const counts = COUNTING.has(type);
      const encoded = values.map((each) => encodeValue(each, counts));
      return { name, help, type, aggregator, values: encoded };
    }),
  );
}

function encodeValue({ value, labels = {}, metricName }: MetricValue, counts: boolean): object {
  const isFraction = counts && Number.isFinite(value) && !Number.isInteger(value);
  const exact = isFraction ? Math.round(value * PRECISION) / PRECISION : value;
  // JSON cannot represent NaN or infinity.
  return { value: Number.isFinite(exact) ? exact : String(exact), labels, metricName };
}

/**
 * If `worker` is given, adds it as a label to every value. The app's own label of that name becomes
 * `exported_worker`, as in Prometheus.
 */
export function labelWorkers(
  metrics: readonly MetricJson[],
  worker: number | undefined,
): readonly MetricJson[] {
  if (worker === undefined) return metrics;
  return metrics.map((metric) => ({
    ...metric,
    values: metric.values.map(({ labels: { worker: exported, ...labels } = {}, ...value }) => ({
      ...value,
      labels: { ...labels, ...(exported !== undefined && { exported_worker: exported }), worker },
    })),
  }));
}

/** @returns no metrics if the text is not from {@link encodeMetrics}. */
export function decodeMetrics(body: string): readonly MetricJson[] {
  try {
    const metrics = JSON.parse(body) as { values: { value: number | string }[] }[];
    metrics.forEach(({ values }) => values.forEach((each) => (each.value = Number(each.value))));
    return metrics as unknown as readonly MetricJson[];
  } catch {
    return [];
  }
}

/**
 * Adds an ended process's counts to the counts of earlier processes. A histogram with different buckets
 * replaces the earlier histogram.
 */
export function addUp(before: string | undefined, ended: string): string {
  const all = decodeMetrics(ended).flatMap((metric) => {
    if (!COUNTING.has(metric.type) || metric.aggregator !== 'sum') return [];
    const values = metric.values.filter(({ labels }) => labels?.['quantile'] === undefined);
    return values.length === 0 ? [] : [{ ...metric, values }];
  });
  const earlier = new Map(decodeMetrics(before ?? '').map((metric) => [metric.name, metric]));
  const sums = all.map((metric) => {
    const other = earlier.get(metric.name);
    earlier.delete(metric.name);
    return other === undefined || bucketsOf(other) !== bucketsOf(metric)
      ? metric
      : { ...metric, values: sum(other.values, metric.values) };
  });
  return encodeMetrics([...sums, ...earlier.values()]);
}

function sum(a: readonly MetricValue[], b: readonly MetricValue[]): MetricValue[] {
  const sums = new Map<string, MetricValue>();
  for (const each of [...a, ...b]) {
    const labels = Object.entries(each.labels ?? {}).sort(([x], [y]) => (x < y ? -1 : 1));
    const key = JSON.stringify([each.metricName, labels]);
    const value = each.value + (sums.get(key)?.value ?? 0);
    sums.set(key, { ...each, value });
  }
  return [...sums.values()];
}

/** The bounds of a histogram's buckets as text. Only histograms with equal bounds can be added. */
export function bucketsOf({ type, values }: MetricJson): string {
  if (type !== 'histogram') return '';
  const bounds = values.map(({ labels }) => labels?.['le']).filter((le) => le !== undefined);
  return bounds.slice(0, bounds.indexOf('+Inf')).join();
}
