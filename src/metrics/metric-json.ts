import type { Registry } from 'prom-client';

/** One sample. `metricName` where it is not the metric's own: `…_bucket`, `…_sum`, `…_count`. */
export interface Sample {
  readonly labels: Readonly<Record<string, string | number>>;
  value: number;
  readonly metricName?: string | undefined;
}

/** A metric as prom-client's registries give it, without what does not cross processes. */
export interface MetricJson {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary';
  /** How the values of several workers become one: prom-client's names. Default `sum`. */
  readonly aggregator?: string;
  readonly values: readonly Sample[];
}

/** Every metric of a registry. Exemplars and timestamps are left out. */
export async function readRegistry(registry: Registry): Promise<MetricJson[]> {
  const metrics = (await registry.getMetricsAsJSON()) as unknown as (Omit<MetricJson, 'type'> & {
    type: unknown;
  })[];
  return metrics.map(({ name, help, type, aggregator, values }) => ({
    name,
    help,
    type: type as MetricJson['type'],
    ...(aggregator !== undefined && { aggregator }),
    values: values.map((sample) => ({
      labels: sample.labels,
      value: sample.value,
      ...(sample.metricName !== undefined && { metricName: sample.metricName }),
    })),
  }));
}

/** Metrics as the text that travels between processes. */
export function encodeMetrics(metrics: readonly MetricJson[]): string {
  // JSON has no NaN and no infinities; as text they come through.
  return JSON.stringify(metrics, (_key, value: unknown) =>
    typeof value === 'number' && !Number.isFinite(value) ? String(value) : value,
  );
}

/** What {@link encodeMetrics} wrote. A worker without metrics sends an empty text. */
export function decodeMetrics(body: string): MetricJson[] {
  if (body === '') return [];
  const metrics = JSON.parse(body) as MetricJson[];
  for (const { values } of metrics)
    for (const sample of values) sample.value = Number(sample.value);
  return metrics;
}
