import type { Registry } from 'prom-client';
import {
  type Column,
  type Labels,
  labelText,
  METRIC_TYPES,
  type MetricFamily,
  type MetricType,
  type Row,
  sortedLabelText,
} from '../exposition/metric-family.js';
import type { SeriesLimit } from '../exposition/series-limit.js';
import { inTime } from '../../contract/process/in-time.js';
import { READ_TIMEOUT_MS } from '../../contract/snapshot/index.js';

/** A sample of prom-client. `metricName` is set if it differs from the metric's name: `…_bucket`, `…_sum`, `…_count`. */
interface Sample {
  readonly labels?: Labels | undefined;
  readonly value: number;
  readonly metricName?: string | undefined;
}

/** A metric of prom-client. */
export interface RegistryMetric {
  readonly name: string;
  readonly help: string;
  readonly type: unknown;
  readonly aggregator?: string | undefined;
  readonly values?: readonly Sample[] | undefined;
}

/** How the metrics of a registry are read. */
export interface Reading {
  readonly limit: SeriesLimit;
  /** The slot, which becomes a label of every series if workers are shown separately. */
  readonly workerLabel: number | undefined;
  /** Whether workers may name the labels of a series in different orders, as in the app's metrics. */
  readonly unordered: boolean;
  /** The last known metrics, so that a counter is not missing because it was slow once. */
  readonly last: WeakMap<object, MetricFamily>;
  /** Metrics whose `collect()` still hangs. Such a metric is not read again until its `collect()` has ended. */
  readonly hung: WeakSet<object>;
  /** Is called for each metric that could not be read, with the reason. */
  failed(name: string, reason: string): void;
}

/** The part of a registry that is used, so that a registry of another copy or library also works. */
interface ReadableRegistry {
  getMetricsAsArray(): readonly { readonly name: string; get(): unknown }[];
  /**
   * Private, but in every version since 11. `getMetricsAsJSON()` adds these labels, but fails
   * entirely if one metric fails.
   */
  readonly _defaultLabels?: Labels | undefined;
}

/**
 * Reads every metric of a registry, without exemplars and timestamps. A metric whose `collect()`
 * throws or hangs does not affect the others: a gauge is left out, and any other metric keeps its
 * last known values.
 */
export async function readRegistry(registry: Registry, reading: Reading): Promise<MetricFamily[]> {
  const source = registry as unknown as ReadableRegistry;
  const metrics = source.getMetricsAsArray();
  const families = await Promise.all(
    metrics.map(async (metric) => {
      const answer = await askOnce(metric, reading.hung, async () =>
        toFamily((await metric.get()) as RegistryMetric, reading, source._defaultLabels),
      );
      if (answer.outcome === 'done') {
        if (answer.value !== undefined) reading.last.set(metric, answer.value);
        return answer.value;
      }
      reading.failed(metric.name, answer.reason);
      const last = reading.last.get(metric);
      return last?.type === 'gauge' ? undefined : last;
    }),
  );
  return families.filter((family) => family !== undefined);
}

type Answer<T> =
  | { readonly outcome: 'done'; readonly value: T }
  | { readonly outcome: 'failed'; readonly reason: string };

const NO_ANSWER = `no answer within ${READ_TIMEOUT_MS} ms`;

async function askOnce<T>(
  metric: object,
  hung: WeakSet<object>,
  read: () => Promise<T>,
): Promise<Answer<T>> {
  if (hung.has(metric)) return { outcome: 'failed', reason: NO_ANSWER };
  const answer = read()
    .then(
      (value): Answer<T> => ({ outcome: 'done', value }),
      (error: unknown): Answer<T> => ({ outcome: 'failed', reason: String(error) }),
    )
    .finally(() => hung.delete(metric));
  return inTime(answer, READ_TIMEOUT_MS, () => {
    hung.add(metric);
    return { outcome: 'failed', reason: NO_ANSWER };
  });
}

const SUFFIXES: Readonly<Record<MetricType, readonly string[]>> = {
  counter: [''],
  gauge: [''],
  histogram: ['_bucket', '_sum', '_count'],
  summary: ['', '_sum', '_count'],
};

/**
 * Converts a metric of prom-client to a family; `undefined` if Prometheus does not know its type.
 *
 * @param defaults labels that are added to samples without a label of that name.
 * @throws TypeError if a sample does not fit the type of the metric.
 */
export function toFamily(
  { name, help, type: typeName, aggregator = 'sum', values = [] }: RegistryMetric,
  { limit, workerLabel, unordered }: Reading,
  defaults: Labels = {},
): MetricFamily | undefined {
  const type = METRIC_TYPES.find((each) => each === typeName);
  if (type === undefined) return undefined;
  const columnLabel = type === 'histogram' ? 'le' : type === 'summary' ? 'quantile' : undefined;
  const hasDefaults = Object.keys(defaults).length > 0;
  const columns: Column[] = [];
  const columnAt = new Map<string, number>();
  const series = new Map<string, Row>();
  for (const { metricName = name, labels = {}, value } of values) {
    let own = hasDefaults ? withDefaults(labels, defaults) : labels;
    let columnText = '';
    if (columnLabel !== undefined && columnLabel in own) {
      const { [columnLabel]: column, ...others } = own;
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
      if (!metricName.startsWith(name) || !SUFFIXES[type].includes(suffix)) {
        throw new TypeError(`a ${type} has no sample ${metricName}`);
      }
      columnAt.set(key, (at = columns.length));
      columns.push({ suffix, label: columnText });
    }
    row[at] = value;
  }
  for (const row of series.values()) {
    for (let i = 0; i < columns.length; i++) row[i] ??= null;
  }
  // With a label for the worker, nothing is omitted. `max` merges the values of the two workers that
  // a slot has during a reload.
  const rule = workerLabel !== undefined && aggregator === 'omit' ? 'max' : aggregator;
  // A metric without samples still has its HELP and TYPE lines.
  return { name, help, type, aggregator: rule, columns, series };
}

/** As in prom-client, an empty label also gets the default. */
function withDefaults(labels: Labels, defaults: Labels): Labels {
  const all: Record<string, string | number> = { ...labels };
  for (const name of Object.keys(defaults)) all[name] = all[name] || defaults[name]!;
  return all;
}

/** An app's own label `worker` is renamed, as Prometheus does with conflicting labels of targets. */
function withWorkerLabel(labels: Labels, slot: number): Labels {
  const { worker, ...others } = labels;
  if (worker === undefined) return { ...others, worker: slot };
  let name = 'exported_worker';
  while (name in others) name = `exported_${name}`;
  return { ...others, [name]: worker, worker: slot };
}
