/**
 * The parts of `prom-client` and `@prometheus-io/client` that this package uses. Both clients have
 * this shape, so neither package's types are imported.
 */
export interface PrometheusClient extends MetricsClient {
  /** The default registry. */
  readonly register: MetricsRegistry;
  readonly Registry: new () => MetricsRegistry;
  collectDefaultMetrics(options: { readonly register: MetricsRegistry }): void;
  readonly AggregatorRegistry: {
    /** Merges metrics of the same name by their aggregators. */
    aggregate(metrics: readonly (readonly MetricJson[])[]): MetricsRegistry;
  };
}

/** The metric classes of the app's Prometheus client. */
export interface MetricsClient {
  readonly Counter: MetricClass<{ inc(labels: MetricLabels, by?: number): void; reset(): void }>;
  readonly Gauge: MetricClass<{ set(labels: MetricLabels, value: number): void; reset(): void }>;
  readonly Histogram: MetricClass<{ observe(labels: MetricLabels, value: number): void }>;
}

type MetricClass<T> = new (options: MetricSettings<T>) => T;

interface MetricSettings<T> {
  readonly name: string;
  readonly help: string;
  readonly registers: readonly never[];
  readonly labelNames?: readonly string[];
  readonly buckets?: readonly number[];
  /** How the values of several workers are merged. Default `sum`. */
  readonly aggregator?: 'sum' | 'max';
  /** Called at each scrape. */
  readonly collect?: (this: T) => void | Promise<void>;
}

export type MetricLabels = Readonly<Record<string, string | number>>;

/** A registry of either client. */
export interface MetricsRegistry {
  readonly contentType: string;
  registerMetric(metric: object): void;
  removeSingleMetric(name: string): void;
  getMetricsAsJSON(): Promise<object[]>;
  metrics(): Promise<string>;
}

/** A metric as a registry's `getMetricsAsJSON()` returns it. */
export interface MetricJson {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly aggregator?: string;
  readonly values: readonly MetricValue[];
}

export interface MetricValue {
  readonly value: number;
  /** `@prometheus-io/client` omits the labels of some values. */
  readonly labels?: MetricLabels;
  /** Differs from the metric's name in `…_bucket`, `…_sum` and `…_count`. */
  readonly metricName?: string;
}

/** Metrics of another part of this package, or of another package. */
export interface Metrics {
  readonly all: readonly object[];
  /** Metrics that already have the label `worker`. */
  readonly labelled?: readonly object[];
}

/** Creates metrics. Called only if the app has metrics. */
export type MetricsContribution = (client: MetricsClient) => Metrics | Promise<Metrics>;

/** The constructor options that all metrics of this package need. */
export function named(name: string, help: string) {
  const registers: [] = []; // none, because the default registry belongs to the app
  return { name: `nestjs_cluster_${name}`, help, registers };
}
