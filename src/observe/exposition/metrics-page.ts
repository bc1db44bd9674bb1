import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import Negotiator from 'negotiator';
import type {
  CollectedMetrics,
  MetricJson,
  MetricsRegistry,
  PrometheusClient,
} from '../../contract/snapshot/types.js';
import { bucketsOf, decodeMetrics } from '../../contract/snapshot/metrics-body.js';
import type { EndpointRequest, EndpointResponse } from '../endpoints/mount-endpoint.js';
import { clusterMetrics } from './cluster-metrics.js';

const compress = promisify(gzip);

/** Compression does not pay off for shorter pages. */
const MIN_GZIP_LENGTH = 1_024;

/** A page that concurrent requests share. It is compressed at most once. */
export class MetricsPage {
  #gzipped: Promise<Buffer> | undefined;

  constructor(
    private readonly contentType: string,
    private readonly text: string,
  ) {}

  async respond(request: EndpointRequest): Promise<EndpointResponse> {
    const { contentType, text } = this;
    const gzipped =
      text.length >= MIN_GZIP_LENGTH &&
      new Negotiator(request).encoding(['gzip', 'identity']) === 'gzip';
    return {
      status: 200,
      contentType,
      body: gzipped ? await (this.#gzipped ??= compress(text)) : text,
      headers: { Vary: 'Accept-Encoding', ...(gzipped && { 'Content-Encoding': 'gzip' }) },
    };
  }
}

/**
 * Uses the Prometheus client to merge the metrics of the cluster and its workers.
 *
 * If the primary did not answer, the counts of other workers are unknown. Counters are then
 * omitted: a gap in a time series is harmless, but Prometheus treats a lower value as a reset.
 *
 * @returns the registry, and the metric names that both the cluster and the app have. For these
 *   names, the registry has the app's metrics.
 */
export function clusterRegistry(
  client: PrometheusClient,
  collected: CollectedMetrics,
): { readonly registry: MetricsRegistry; readonly conflicts: readonly string[] } {
  const newestFirst = collected.workers.toSorted((a, b) => b.generation - a.generation);
  const bodies = [...newestFirst.map(({ body }) => body), ...collected.retired];
  const workers = withSameBuckets(bodies.map(decodeMetrics));
  const names = new Set(workers.flat().map(({ name }) => name));
  const cluster = clusterMetrics(collected);
  const shown = cluster.filter(
    ({ name, type }) =>
      !names.has(name) && (collected.snapshotAgeMs === undefined || type === 'gauge'),
  );
  return {
    registry: client.AggregatorRegistry.aggregate([shown, ...workers]),
    conflicts: cluster.map(({ name }) => name).filter((name) => names.has(name)),
  };
}

/** Drops an older release's histograms if bucket bounds differ, because they cannot be summed. */
function withSameBuckets(newestFirst: readonly (readonly MetricJson[])[]): MetricJson[][] {
  const buckets = new Map<string, string>();
  return newestFirst.map((metrics) =>
    metrics.filter((metric) => {
      const own = bucketsOf(metric);
      if (own === '') return true; // no histogram, or an empty one
      if (!buckets.has(metric.name)) buckets.set(metric.name, own);
      return buckets.get(metric.name) === own;
    }),
  );
}
