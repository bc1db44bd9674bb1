import type { Logger } from '@nestjs/common';
import { Counter, Gauge, Histogram, type Metric, Registry } from 'prom-client';
import { foldBodies } from '../exposition/cluster-page.js';
import type { MetricFamily } from '../exposition/metric-family.js';
import { encodeBody } from '../exposition/metrics-body.js';
import { droppedFamily, SeriesLimit } from '../exposition/series-limit.js';
import {
  MAX_METRICS_BODY_LENGTH,
  type MetricsContribution,
  type MetricsSource,
} from '../../contract/snapshot/index.js';
import { measureDefaults } from './default-metrics.js';
import type { HttpMetrics } from './http-metrics.js';
import { type Reading, readRegistry } from './read-registry.js';

/**
 * Default metrics of prom-client that are left out, because they are gauges with the suffix of a
 * counter. The metrics with the same names without `_total` give the same numbers by type.
 */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
];

/** The names of prom-client's default metrics. */
const DEFAULT = /^(process|nodejs)_/;

/** All metrics of this process: the app's metrics and the metrics of this package. */
export class ProcessMetrics implements MetricsSource {
  /** The registry of this package's metrics. The app's own registry is not changed. */
  readonly #own = new Registry();
  /** The metrics that already have their own label `worker`. */
  readonly #labelled = new Registry();
  readonly #reading: Reading;
  http: HttpMetrics | undefined;
  /** Ends the measurements. The measured values stay. */
  stop: () => void = () => {};
  /** Names of metrics about which a warning was logged. */
  readonly #conflicts = new Set<string>();
  readonly #unreadable = new Set<string>();
  #toldOfSize = false;

  constructor(
    private readonly app: Registry,
    /** The slot, which becomes a label of every series if workers are shown separately. */
    readonly workerLabel: number | undefined,
    private readonly logger: Logger,
    readonly limit = new SeriesLimit(),
  ) {
    this.#reading = {
      limit,
      workerLabel,
      unordered: false,
      last: new WeakMap(),
      hung: new WeakSet(),
      failed: (name, reason) => this.#warnOfUnreadable(name, reason),
    };
  }

  /** Adds prom-client's default metrics of the process. */
  measureDefaults(): void {
    this.stop = measureDefaults(this.#own);
    for (const name of MISNAMED) this.#own.removeSingleMetric(name);
  }

  /** Adds metrics that another part of this package measures. */
  async extend(contribution: MetricsContribution): Promise<void> {
    try {
      const { all, labelled = [] } = await contribution({ Counter, Gauge, Histogram });
      for (const metric of all as readonly Metric[]) this.#own.registerMetric(metric);
      for (const metric of labelled as readonly Metric[]) this.#labelled.registerMetric(metric);
    } catch (error) {
      this.logger.warn(`Metrics are left out: ${String(error)}`);
    }
  }

  async serialize(): Promise<string> {
    const { app, own } = await this.#read();
    const body = encodeBody([...app, ...own]);
    if (body.length <= MAX_METRICS_BODY_LENGTH) return body;
    this.#warnOfSize(body.length);
    return encodeBody(own);
  }

  fold(bodies: readonly string[]): string {
    return foldBodies(bodies, this.limit);
  }

  /** The metrics of the app and of this package. If both have the same name, the app's metric is used. */
  async #read(): Promise<{ app: readonly MetricFamily[]; own: readonly MetricFamily[] }> {
    const app = await readRegistry(this.app, { ...this.#reading, unordered: true });
    const own = [
      ...(await readRegistry(this.#own, this.#reading)),
      ...(await readRegistry(this.#labelled, { ...this.#reading, workerLabel: undefined })),
      ...(this.http?.families() ?? []),
    ];
    const names = new Set(app.map(({ name }) => name));
    this.warnOfConflicts(own.map(({ name }) => name).filter((name) => names.has(name)));
    const shown = own.filter(({ name }) => !names.has(name));
    return { app, own: [...shown, droppedFamily(this.limit.counts)] };
  }

  #warnOfSize(length: number): void {
    if (this.#toldOfSize) return;
    this.#toldOfSize = true;
    const megabytes = (characters: number) => Math.round(characters / 1024 / 1024);
    this.logger.warn(
      `The app's metrics are left out: with ${megabytes(length)} MB they are larger than ${megabytes(MAX_METRICS_BODY_LENGTH)} MB. ` +
        `Give them fewer labels`,
    );
  }

  #warnOfUnreadable(name: string, reason: string): void {
    if (this.#unreadable.has(name)) return;
    this.#unreadable.add(name);
    this.logger.warn(
      `The metric ${name} is left out, or as it was, while it cannot be read: ${reason}`,
    );
  }

  /**
   * Warns once for each name. The first warning comes at start, when the worker first sends its
   * metrics. Default metrics cause no warning, because the app's default metrics are the same.
   */
  warnOfConflicts(conflicts: readonly string[]): void {
    const news = conflicts.filter((name) => !this.#conflicts.has(name) && !DEFAULT.test(name));
    if (news.length === 0) return;
    for (const name of news) this.#conflicts.add(name);
    this.logger.warn(
      `The app registers metrics of the same names as this package, and only the app's are shown: ${news.join(', ')}. ` +
        `Rename or remove them in the app`,
    );
  }
}
