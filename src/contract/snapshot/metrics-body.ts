import type { MetricJson, MetricValue } from './prometheus.js';

/** Sums of multiples of this are exact, whatever their order: otherwise a sum could fall, and Prometheus take it for a restart. */
const PRECISION = 2 ** 20;

/** Metrics of one process as text, for other processes. */
export function encodeMetrics(metrics: readonly MetricJson[]): string {
  return JSON.stringify(
    metrics.map(({ name, help, type, aggregator, values }) => {
      const encoded = values.map(encodeValue);
      return { name, help, type, aggregator, values: encoded };
    }),
  );
}

function encodeValue({ value, labels = {}, metricName }: MetricValue): object {
  // JSON has no NaN and no infinity.
  const exact = Number.isInteger(value) ? value : Math.round(value * PRECISION) / PRECISION;
  return { value: Number.isFinite(exact) ? exact : String(value), labels, metricName };
}

/**
 * Adds the label `worker` to every value, if it is given. The app's own label of that name becomes
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

/** @returns no metrics for a text that {@link encodeMetrics} has not made. */
export function decodeMetrics(body: string): readonly MetricJson[] {
  try {
    const metrics = JSON.parse(body) as { values: { value: number | string }[] }[];
    for (const { values } of metrics) {
      for (const each of values) each.value = Number(each.value);
    }
    return metrics as unknown as readonly MetricJson[];
  } catch {
    return [];
  }
}

/** Types whose values only rise. The others say nothing about a process that has ended. */
const COUNTING: ReadonlySet<string> = new Set(['counter', 'histogram']);

/** Adds what a process has counted until its end to what earlier processes have counted. */
export function addUp(before: string | undefined, ended: string): string {
  const all = decodeMetrics(ended).filter(({ type }) => COUNTING.has(type));
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

/** The bounds of a histogram's buckets as text; histograms with other bounds cannot be added. */
export function bucketsOf({ type, values }: MetricJson): string {
  if (type !== 'histogram') return '';
  const bounds = values.map(({ labels }) => labels?.['le']).filter((le) => le !== undefined);
  return bounds.slice(0, bounds.indexOf('+Inf')).join();
}
