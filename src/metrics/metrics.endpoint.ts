import { Inject, Injectable, Logger } from '@nestjs/common';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { collectDefaultMetrics, type Metric, register, Registry } from 'prom-client';
import { type EndpointResponse, mountEndpoint } from '../endpoints/mount-endpoint.js';
import type { ResolvedModuleOptions } from '../options/module.js';
import { CLUSTER_LINK, type ClusterLink, type MetricsSource } from '../snapshot/index.js';
import { clusterMetrics } from './cluster-metrics.js';
import { HttpRequestDuration } from './http-request-duration.js';
import { mergeMetrics } from './merge-metrics.js';
import { decodeMetrics, encodeMetrics, type MetricJson, readRegistry } from './metric-json.js';
import { createRouteTemplateReader } from './route-template.js';

type Options = Exclude<ResolvedModuleOptions['metrics'], false>;

/** Measures this process and serves the metrics of the whole cluster. */
@Injectable()
export class MetricsEndpoint implements MetricsSource {
  readonly #logger = new Logger('ClusterModule');
  /** What this package measures; the app's own registry is left as it is. */
  readonly #own = new Registry();
  #app: Registry = register;
  #prefix = '';
  /** Names already told of. */
  readonly #conflicts = new Set<string>();
  readonly #unreadable = new Set<string>();

  constructor(@Inject(CLUSTER_LINK) private readonly link: ClusterLink) {}

  /** @returns the path that is served. */
  mount(adapter: AbstractHttpAdapter, options: Options): string {
    const { path, prefix, buckets, registry, defaultMetrics } = options;
    this.#app = registry ?? register;
    this.#prefix = prefix;
    if (defaultMetrics) collectDefaultMetrics({ register: this.#own, prefix });
    const name = `${prefix}http_request_duration_seconds`;
    const duration = new HttpRequestDuration(name, buckets, createRouteTemplateReader(adapter));
    // A registry reads `name` and `get()` of a metric, as prom-client's own AggregatorRegistry does.
    this.#own.registerMetric(duration as unknown as Metric);
    this.link.observeResponses((request, response, ms) => duration.observe(request, response, ms));
    this.link.provideMetrics(this);
    mountEndpoint(adapter, path, () => this.#respond());
    return path;
  }

  /** Metrics that another part of this package measures. */
  include(metrics: readonly Metric[]): void {
    for (const metric of metrics) this.#own.registerMetric(metric);
  }

  async serialize(): Promise<string> {
    return encodeMetrics(await this.#read());
  }

  fold(bodies: readonly string[]): string {
    return encodeMetrics(mergeMetrics([], bodies.map(decodeMetrics)));
  }

  /** The app's metrics and ours. Of a name that both have, the app's. */
  async #read(): Promise<MetricJson[]> {
    const app = await readRegistry(this.#app, this.#onUnreadable);
    const names = new Set(app.map(({ name }) => name));
    const own = await readRegistry(this.#own, this.#onUnreadable);
    this.#warnOfConflicts(own.filter(({ name }) => names.has(name)));
    return [...app, ...own.filter(({ name }) => !names.has(name))];
  }

  async #respond(): Promise<EndpointResponse> {
    const collected = await this.link.collectMetrics();
    const merged = mergeMetrics(
      collected.workers.map(({ body }) => decodeMetrics(body)),
      collected.retired.map(decodeMetrics),
    );
    const page = new Registry();
    const names = new Set(merged.map(({ name }) => name));
    const cluster = clusterMetrics(collected, this.#prefix);
    this.#warnOfConflicts(cluster.filter(({ name }) => names.has(name)));
    for (const metric of [...cluster.filter(({ name }) => !names.has(name)), ...merged]) {
      page.registerMetric({ ...metric, get: async () => metric } as unknown as Metric);
    }
    return { status: 200, contentType: page.contentType, body: await page.metrics() };
  }

  readonly #onUnreadable = (name: string, reason: string): void => {
    if (this.#unreadable.has(name)) return;
    this.#unreadable.add(name);
    this.#logger.warn(`The metric ${name} is left out while it cannot be read: ${reason}`);
  };

  /** Also at start: the first serialisation is that of the first push. */
  #warnOfConflicts(conflicts: readonly MetricJson[]): void {
    const news = conflicts.map(({ name }) => name).filter((name) => !this.#conflicts.has(name));
    if (news.length === 0) return;
    for (const name of news) this.#conflicts.add(name);
    this.#logger.warn(
      `The app registers metrics of the same names as this package, and only the app's are shown: ${news.join(', ')}. ` +
        `Set metrics.prefix to rename those of this package, or metrics.defaultMetrics to false`,
    );
  }
}
