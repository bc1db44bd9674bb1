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

/** A metric as prom-client has it in memory. */
type RegistryMetric = Omit<MetricJson, 'type'> & { readonly type: unknown };

/** A `collect()` that takes longer is left out of this reading. Twice this has to fit into a scrape. */
const COLLECT_TIMEOUT_MS = 150;

/**
 * Every metric of a registry, without exemplars and timestamps. One whose
 * `collect()` throws or hangs is left out, and takes no other with it.
 *
 * @param failed is told of those.
 */
export async function readRegistry(
  registry: Registry,
  failed: (name: string, reason: string) => void = () => {},
): Promise<MetricJson[]> {
  const all = await withDeadline(registry.getMetricsAsJSON());
  if (all.outcome === 'done') return all.value.map((metric) => pick(metric as never));
  // The whole says nothing of its parts: ask each. Default labels of the registry are lost here.
  const metrics = registry.getMetricsAsArray() as unknown as {
    name: string;
    get(): Promise<RegistryMetric>;
  }[];
  const readings = await Promise.all(
    metrics.map(async ({ name }, i) => ({ name, reading: await withDeadline(metrics[i]!.get()) })),
  );
  return readings.flatMap(({ name, reading }) => {
    if (reading.outcome === 'done') return [pick(reading.value)];
    failed(name, reading.reason);
    return [];
  });
}

type Reading<T> =
  | { readonly outcome: 'done'; readonly value: T }
  | { readonly outcome: 'failed'; readonly reason: string };

async function withDeadline<T>(promise: Promise<T>): Promise<Reading<T>> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<Reading<T>>((resolve) => {
    const reason = `no answer within ${COLLECT_TIMEOUT_MS} ms`;
    timer = setTimeout(() => resolve({ outcome: 'failed', reason }), COLLECT_TIMEOUT_MS);
  });
  const reading = promise.then(
    (value): Reading<T> => ({ outcome: 'done', value }),
    (error: unknown): Reading<T> => ({ outcome: 'failed', reason: String(error) }),
  );
  try {
    return await Promise.race([reading, deadline]);
  } finally {
    clearTimeout(timer);
  }
}

function pick({ name, help, type, aggregator, values }: RegistryMetric): MetricJson {
  return {
    name,
    help,
    type: type as MetricJson['type'],
    ...(aggregator !== undefined && { aggregator }),
    values: values.map((sample) => ({
      labels: sample.labels,
      value: sample.value,
      ...(sample.metricName !== undefined && { metricName: sample.metricName }),
    })),
  };
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
