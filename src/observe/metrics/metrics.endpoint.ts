import { loadPrometheusClients } from '../../contract/options/peers.js';
import { Inject, Injectable, Logger } from '@nestjs/common';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { mountEndpoint, shareInFlight } from '../endpoints/mount-endpoint.js';
import { clusterRegistry, MetricsPage } from '../exposition/metrics-page.js';
import { type ResolvedModuleOptions } from '../../contract/options/module.js';
import {
  CLUSTER_LINK,
  type ClusterLink,
  type MetricsContribution,
  type PrometheusClient,
} from '../../contract/snapshot/types.js';
import type { HttpMetrics } from '../../worker/serve/http-metrics.js';
import type { ProcessMetrics } from './process-metrics.js';

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
  #client: PrometheusClient | undefined;
  #http: typeof HttpMetrics | undefined;
  readonly #page = shareInFlight(() => this.#collect());

  constructor(@Inject(CLUSTER_LINK) private readonly link: Link) {}

  /** @throws ClusterConfigurationError if no Prometheus client is installed. */
  async measure({ registry, perWorker }: Options): Promise<void> {
    const clients = await loadPrometheusClients();
    const [{ ProcessMetrics }, { HttpMetrics }] = await Promise.all([
      import('./process-metrics.js'),
      import('../../worker/serve/http-metrics.js'),
    ]);
    this.#http = HttpMetrics;
    const [client] = clients;
    const registries = registry ? [registry] : clients.map(({ register }) => register);
    const workerLabel = perWorker ? this.link.identity.slot : undefined;
    this.#client = client;
    this.#metrics = new ProcessMetrics(client!, registries, workerLabel, this.#logger);
    this.#metrics.measureDefaults();
    this.link.provideMetrics(this.#metrics);
  }

  /** Measures requests. Serves the page if `isServed`. @returns the path of the page. */
  mount(adapter: AbstractHttpAdapter, { path, buckets }: Options, isServed = true): string {
    const http = new this.#http!(buckets);
    this.#metrics!.http = http;
    this.link.observeResponses(http);
    if (isServed) {
      mountEndpoint(adapter, path, async (request) => (await this.#page()).respond(request));
    }
    return path;
  }

  /** Adds metrics of another part of this package. Does nothing without {@link measure}. */
  async extend(contribution: MetricsContribution): Promise<void> {
    await this.#metrics?.extend(contribution);
  }

  async #collect(): Promise<MetricsPage> {
    const collected = await this.link.collectMetrics();
    const { registry, conflicts } = clusterRegistry(this.#client!, collected);
    this.#metrics!.warnOfConflicts(conflicts);
    return new MetricsPage(registry.contentType, await registry.metrics());
  }
}
