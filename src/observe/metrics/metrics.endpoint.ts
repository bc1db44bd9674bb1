import { Inject, Injectable, Logger } from '@nestjs/common';
import type { AbstractHttpAdapter } from '@nestjs/core';
import type { Metric } from 'prom-client';
import {
  type EndpointRequest,
  type EndpointResponse,
  mountEndpoint,
} from '../endpoints/mount-endpoint.js';
import { clusterPage } from '../exposition/cluster-page.js';
import { MetricsPage } from '../exposition/metrics-page.js';
import { loadPeer, type ResolvedModuleOptions } from '../../contract/options/module.js';
import {
  CLUSTER_LINK,
  type ClusterLink,
  type MetricsContribution,
} from '../../contract/snapshot/index.js';
import { HttpMetrics } from './http-metrics.js';
import type { ProcessMetrics } from './process-metrics.js';
import { createRouteTemplateReader, type RouteTemplateReader } from './route-template.js';

type Options = Exclude<ResolvedModuleOptions['metrics'], false>;
type Link = Pick<
  ClusterLink,
  'identity' | 'observeResponses' | 'provideMetrics' | 'collectMetrics'
>;

/** Measures this process and serves the metrics of the whole cluster. */
@Injectable()
export class MetricsEndpoint {
  readonly #logger = new Logger('ClusterModule');
  #metrics: ProcessMetrics | undefined;
  #routes:
    { readonly adapter: AbstractHttpAdapter; readonly read: RouteTemplateReader } | undefined;
  /** The page that is being made: requests that come during this time get it as well. */
  #page: Promise<MetricsPage> | undefined;

  constructor(@Inject(CLUSTER_LINK) private readonly link: Link) {}

  /** Before anybody registers a route: on Fastify only those are seen that come after. */
  followRoutes(adapter: AbstractHttpAdapter): void {
    // In a testing module the adapter comes after the modules.
    if (this.#routes?.adapter === adapter) return;
    this.#routes = { adapter, read: createRouteTemplateReader(adapter) };
  }

  /** Measures this process. @throws ClusterConfigurationError without prom-client. */
  async measure({ prefix, registry, perWorker, maxSeries, ...options }: Options): Promise<void> {
    const [{ register }, { ProcessMetrics }] = await loadPeer('metrics', () =>
      Promise.all([import('prom-client'), import('./process-metrics.js')]),
    );
    const workerLabel = perWorker ? this.link.identity.slot : undefined;
    const { defaultMetrics } = options;
    this.#metrics = new ProcessMetrics(
      registry ?? register,
      { prefix, maxSeries, defaultMetrics, workerLabel },
      this.#logger,
    );
    this.link.provideMetrics(this.#metrics);
  }

  /** Measures requests, too. @returns the path, whether it is served or not. */
  mount(adapter: AbstractHttpAdapter, { path, prefix, buckets }: Options, isServed = true): string {
    const metrics = this.#metrics!;
    const { workerLabel } = metrics.options;
    this.followRoutes(adapter);
    const http = new HttpMetrics(prefix, buckets, this.#routes!.read, metrics.limit, workerLabel);
    metrics.http = http;
    this.link.observeResponses(http);
    if (isServed) mountEndpoint(adapter, path, (request) => this.#respond(metrics, request));
    return path;
  }

  /** Metrics that another part of this package measures. */
  include(metrics: readonly Metric[], labelled: readonly Metric[]): void {
    this.#metrics?.include(metrics, labelled);
  }

  /** Likewise, made only where this process is measured. */
  async extend(contribution: MetricsContribution): Promise<void> {
    await this.#metrics?.extend(contribution);
  }

  /** Ends what measures. */
  close(): void {
    this.#metrics?.stop();
  }

  async #respond(metrics: ProcessMetrics, request: EndpointRequest): Promise<EndpointResponse> {
    this.#page ??= this.#collect(metrics).finally(() => (this.#page = undefined));
    const page = await this.#page;
    return page.respond(request);
  }

  async #collect(metrics: ProcessMetrics): Promise<MetricsPage> {
    const collected = await this.link.collectMetrics();
    const { prefix } = metrics.options;
    const { families, conflicts } = clusterPage(collected, prefix, metrics.limit);
    metrics.warnOfConflicts(conflicts);
    return new MetricsPage(families);
  }
}
