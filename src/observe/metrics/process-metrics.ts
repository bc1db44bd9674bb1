import type { Logger } from '@nestjs/common';
import { onceEach } from '../../contract/errors/errors.js';
import { inTime } from '../../contract/process/in-time.js';
import {
  MAX_METRICS_BODY_LENGTH,
  type MetricJson,
  type MetricsContribution,
  type MetricsRegistry,
  type MetricsSource,
  type PrometheusClient,
  READ_TIMEOUT_MS,
} from '../../contract/snapshot/types.js';
import { encodeMetrics, labelWorkers } from '../../contract/snapshot/metrics-body.js';
import type { HttpMetrics } from '../../worker/serve/http-metrics.js';

/**
 * Default metrics with names that promtool rejects: gauges with a counter's suffix, and names that
 * contain a type. They are dropped, because other metrics have the same values.
 */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
  'nodejs_eventloop_utilization_histogram',
  'nodejs_eventloop_utilization_summary',
];

/** The names of default metrics. An app may also collect them. */
const DEFAULT = /^(process|nodejs)_/;

/** All metrics of this process: the app's and this package's. */
export class ProcessMetrics implements MetricsSource {
  /** This package's metrics. The app's registries are not modified. */
  readonly #own: MetricsRegistry;
  /** Metrics that already have a label `worker`. */
  readonly #labelled: MetricsRegistry;
  http: HttpMetrics | undefined;
  /** The last metrics of each registry. Used if its `collect()` functions fail. */
  readonly #last = new WeakMap<MetricsRegistry, readonly MetricJson[]>();
  readonly #warnOnce = onceEach((problem) => this.logger.warn(problem));

  /** @param apps registries of the app. If several have a metric of the same name, the first is used. */
  constructor(
    private readonly client: PrometheusClient,
    private readonly apps: readonly MetricsRegistry[],
    /** The slot, as the label `worker` of every value. `undefined` omits the label. */
    readonly workerLabel: number | undefined,
    private readonly logger: Logger,
  ) {
    this.#own = new client.Registry();
    this.#labelled = new client.Registry();
  }

  measureDefaults(): void {
    this.client.collectDefaultMetrics({ register: this.#own });
    for (const name of MISNAMED) this.#own.removeSingleMetric(name);
  }

  async extend(contribution: MetricsContribution): Promise<void> {
    try {
      const { all, labelled = [] } = await contribution(this.client);
      for (const metric of all) this.#own.registerMetric(metric);
      for (const metric of labelled) this.#labelled.registerMetric(metric);
    } catch (error) {
      this.logger.warn(`Some metrics could not be created: ${String(error)}`);
    }
  }

  async serialize(): Promise<string> {
    const apps = await Promise.all(this.apps.map((registry) => this.#read(registry)));
    const own = [...(await this.#read(this.#own)), ...(this.http?.metrics() ?? [])];
    const names = new Set<string>();
    const unnamed = (metrics: readonly MetricJson[]): MetricJson[] => {
      const fresh = metrics.filter(({ name }) => !names.has(name));
      this.warnOfConflicts(metrics.flatMap(({ name }) => (names.has(name) ? name : [])));
      for (const { name } of metrics) names.add(name);
      return fresh;
    };
    const ofApps = apps.flatMap(unnamed);
    const ofPackage = unnamed(own);
    const labelled = unnamed(await this.#read(this.#labelled));
    const encode = (metrics: readonly MetricJson[]) =>
      encodeMetrics([...labelWorkers(metrics, this.workerLabel), ...labelled]);
    const body = encode([...ofApps, ...ofPackage]);
    if (body.length <= MAX_METRICS_BODY_LENGTH) return body;
    const megabytes = MAX_METRICS_BODY_LENGTH / 1024 / 1024;
    this.#warnOnce(
      `The app's metrics are dropped: they exceed ${megabytes} MB. Use fewer distinct label values`,
    );
    return encode(ofPackage);
  }

  warnOfConflicts(names: readonly string[]): void {
    for (const name of names) {
      // If the app also collects default metrics, their values are the same.
      if (!DEFAULT.test(name))
        this.#warnOnce(
          `The metric ${name} exists twice, and only the app's metric is shown. Rename or remove one of them`,
        );
    }
  }

  /** If a `collect()` function of the registry fails or hangs, returns the last metrics. */
  async #read(registry: MetricsRegistry): Promise<readonly MetricJson[]> {
    const failed = (reason: string): readonly MetricJson[] => {
      this.#warnOnce(`Metrics cannot be read (${reason}); their last values are shown`);
      return this.#last.get(registry) ?? [];
    };
    const read = (registry.getMetricsAsJSON() as Promise<MetricJson[]>).then(
      (metrics) => {
        this.#last.set(registry, metrics);
        return metrics;
      },
      (error: unknown) => failed(String(error)),
    );
    return inTime(read, READ_TIMEOUT_MS, () => failed(`timed out after ${READ_TIMEOUT_MS} ms`));
  }
}
