import type {
  CollectedMetrics,
  MetricJson,
  MetricsRegistry,
  PrometheusClient,
} from '../../contract/snapshot/index.js';
import { bucketsOf, decodeMetrics } from '../../contract/snapshot/metrics-body.js';
import { clusterMetrics } from './cluster-metrics.js';

/**
 * The metrics of the cluster and of its workers, merged by the Prometheus client.
 *
 * If the primary did not answer, the current counts of the other workers are unknown. Counters are
 * then left out: a gap in a series is harmless, but Prometheus takes a lower value for a restart.
 *
 * @returns also the names that the cluster and the app both have, of which the app's is shown.
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

/** Leaves out histograms of an older release whose buckets have other bounds: they cannot be added. */
function withSameBuckets(newestFirst: readonly (readonly MetricJson[])[]): MetricJson[][] {
  const buckets = new Map<string, string>();
  return newestFirst.map((metrics) =>
    metrics.filter((metric) => {
      const own = bucketsOf(metric);
      if (own === '') return true; // no histogram, or one without a series
      if (!buckets.has(metric.name)) buckets.set(metric.name, own);
      return buckets.get(metric.name) === own;
    }),
  );
}
