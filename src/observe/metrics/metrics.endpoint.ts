import { Inject, Injectable, Logger } from '@nestjs/common';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { mountEndpoint } from '../endpoints/mount-endpoint.js';
import { shareInFlight } from '../endpoints/share-in-flight.js';
import { clusterPage } from '../exposition/cluster-page.js';
import { MetricsPage } from '../exposition/metrics-page.js';
import { loadPeer, type ResolvedModuleOptions } from '../../contract/options/module.js';
import {
  CLUSTER_LINK,
  type ClusterLink,
  type MetricsContribution,
} from '../../contract/snapshot/index.js';
import type { HttpMetrics } from './http-metrics.js';
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
  #http: typeof HttpMetrics | undefined;
  #routes:
    { readonly adapter: AbstractHttpAdapter; readonly read: RouteTemplateReader } | undefined;
  readonly #page = shareInFlight(() => this.#collect());

  constructor(@Inject(CLUSTER_LINK) private readonly link: Link) {}

  /** Must be called before any route is registered, because Fastify reports only later routes. */
  followRoutes(adapter: AbstractHttpAdapter): void {
    // In a testing module the adapter is created after the modules.
    if (this.#routes?.adapter === adapter) return;
    this.#routes = { adapter, read: createRouteTemplateReader(adapter) };
  }

  /** Measures this process. @throws ClusterConfigurationError if prom-client is not installed. */
  async measure({ registry, perWorker }: Options): Promise<void> {
    const [{ register }, { ProcessMetrics }, { HttpMetrics }] = await loadPeer('metrics', () =>
      Promise.all([
        import('prom-client'),
        import('./process-metrics.js'),
        import('./http-metrics.js'),
      ]),
    );
    this.#http = HttpMetrics;
    const workerLabel = perWorker ? this.link.identity.slot : undefined;
    this.#metrics = new ProcessMetrics(registry ?? register, workerLabel, this.#logger);
    this.#metrics.measureDefaults();
    this.link.provideMetrics(this.#metrics);
  }

  /** Measures requests, and serves the page if `isServed`. @returns the path of the page. */
  mount(adapter: AbstractHttpAdapter, { path, buckets }: Options, isServed = true): string {
    const metrics = this.#metrics!;
    const { workerLabel } = metrics;
    this.followRoutes(adapter);
    const http = new this.#http!(buckets, this.#routes!.read, metrics.limit, workerLabel);
    metrics.http = http;
    this.link.observeResponses(http);
    if (isServed) {
      mountEndpoint(adapter, path, async (request) => (await this.#page()).respond(request));
    }
    return path;
  }

  /** Adds metrics of another part of this package. They are created only if this process is measured. */
  async extend(contribution: MetricsContribution): Promise<void> {
    await this.#metrics?.extend(contribution);
  }

  /** Ends the measurements. */
  close(): void {
    this.#metrics?.stop();
  }

  async #collect(): Promise<MetricsPage> {
    const metrics = this.#metrics!;
    const collected = await this.link.collectMetrics();
    const { families, conflicts } = clusterPage(collected, metrics.limit);
    metrics.warnOfConflicts(conflicts);
    return new MetricsPage(families);
  }
}
