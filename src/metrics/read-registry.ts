import type { Registry } from 'prom-client';
import {
  type Column,
  type Labels,
  labelText,
  METRIC_TYPES,
  type MetricFamily,
  type Row,
  sortedLabelText,
} from '../exposition/metric-family.js';
import type { SeriesLimit } from '../exposition/series-limit.js';

/** A sample as prom-client has it. `metricName` where it is not the metric's own: `…_bucket`, `…_sum`, `…_count`. */
interface Sample {
  readonly labels: Labels;
  readonly value: number;
  readonly metricName?: string | undefined;
}

/** A metric as prom-client has it in memory. */
export interface RegistryMetric {
  readonly name: string;
  readonly help: string;
  readonly type: unknown;
  readonly aggregator?: string | undefined;
  readonly values: readonly Sample[];
}

/** A `collect()` that takes longer is left out of this reading. Twice this has to fit into a scrape. */
const COLLECT_TIMEOUT_MS = 150;

/** How the metrics of a registry are read. */
export interface Reading {
  readonly limit: SeriesLimit;
  /** Slot that every series is labelled with, where each worker is to have its own. */
  readonly workerLabel: number | undefined;
  /** Each worker may name the labels of a series in another order: what the app measures. */
  readonly unordered: boolean;
  /** Told of metrics that are left out, and why. */
  failed(name: string, reason: string): void;
}

/**
 * Every metric of a registry, without exemplars and timestamps. One whose
 * `collect()` throws or hangs is left out, and takes no other with it.
 */
export async function readRegistry(registry: Registry, reading: Reading): Promise<MetricFamily[]> {
  const families = (metrics: readonly RegistryMetric[]) =>
    metrics.flatMap((metric) => toFamily(metric, reading) ?? []);
  const all = await withDeadline(registry.getMetricsAsJSON());
  if (all.outcome === 'done') return families(all.value as unknown as RegistryMetric[]);
  // The whole says nothing of its parts: ask each. Default labels of the registry are lost here.
  const metrics = registry.getMetricsAsArray() as unknown as {
    name: string;
    get(): Promise<RegistryMetric>;
  }[];
  const answers = await Promise.all(
    metrics.map(async (metric) => ({ metric, answer: await withDeadline(metric.get()) })),
  );
  return answers.flatMap(({ metric, answer }) => {
    if (answer.outcome === 'done') return families([answer.value]);
    reading.failed(metric.name, answer.reason);
    return [];
  });
}

type Answer<T> =
  | { readonly outcome: 'done'; readonly value: T }
  | { readonly outcome: 'failed'; readonly reason: string };

async function withDeadline<T>(promise: Promise<T>): Promise<Answer<T>> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<Answer<T>>((resolve) => {
    const reason = `no answer within ${COLLECT_TIMEOUT_MS} ms`;
    timer = setTimeout(() => resolve({ outcome: 'failed', reason }), COLLECT_TIMEOUT_MS);
  });
  const answer = promise.then(
    (value): Answer<T> => ({ outcome: 'done', value }),
    (error: unknown): Answer<T> => ({ outcome: 'failed', reason: String(error) }),
  );
  try {
    return await Promise.race([answer, deadline]);
  } finally {
    clearTimeout(timer);
  }
}

/** A metric of prom-client as a family; `undefined` where it is none that Prometheus knows. */
export function toFamily(
  { name, help, type: typeName, aggregator = 'sum', values }: RegistryMetric,
  { limit, workerLabel, unordered }: Reading,
): MetricFamily | undefined {
  const type = METRIC_TYPES.find((each) => each === typeName);
  if (type === undefined) return undefined;
  const columnLabel = type === 'histogram' ? 'le' : type === 'summary' ? 'quantile' : undefined;
  const columns: Column[] = [];
  const columnAt = new Map<string, number>();
  const series = new Map<string, Row>();
  for (const { metricName = name, labels, value } of values) {
    let own = labels;
    let columnText = '';
    if (columnLabel !== undefined && columnLabel in labels) {
      const { [columnLabel]: column, ...others } = labels;
      columnText = labelText({ [columnLabel]: column! });
      own = others;
    }
    if (workerLabel !== undefined) own = withWorkerLabel(own, workerLabel);
    const text = unordered ? sortedLabelText(own) : labelText(own);
    let row = series.get(text);
    if (row === undefined) {
      if (series.size >= limit.maxSeries) {
        limit.dropped(name, 1);
        continue;
      }
      series.set(text, (row = []));
    }
    const suffix = metricName.slice(name.length);
    const key = `${suffix} ${columnText}`;
    let at = columnAt.get(key);
    if (at === undefined) {
      columnAt.set(key, (at = columns.length));
      columns.push({ suffix, label: columnText });
    }
    row[at] = value;
  }
  for (const row of series.values()) {
    for (let i = 0; i < columns.length; i++) row[i] ??= null;
  }
  // Nothing is left out that has a worker of its own; during a reload the slot has two.
  const rule = workerLabel !== undefined && aggregator === 'omit' ? 'max' : aggregator;
  // Without a sample it still has its HELP and TYPE.
  return { name, help, type, aggregator: rule, columns, series };
}

/** What the app itself calls by that name is renamed, as Prometheus does it with labels of targets. */
function withWorkerLabel(labels: Labels, slot: number): Labels {
  const { worker, ...others } = labels;
  if (worker === undefined) return { ...others, worker: slot };
  let name = 'exported_worker';
  while (name in others) name = `exported_${name}`;
  return { ...others, [name]: worker, worker: slot };
}
