import type { CollectedMetrics } from '../../contract/snapshot/index.js';
import { clusterMetrics } from './cluster-metrics.js';
import { foldFamilies, mergeFamilies } from './merge-families.js';
import type { MetricFamily } from './metric-family.js';
import { decodeBody, encodeBody } from './metrics-body.js';
import { droppedFamily, type SeriesLimit } from './series-limit.js';

/** Every metric of the cluster and of its workers. */
export interface ClusterPage {
  readonly families: readonly MetricFamily[];
  /** Names of metrics that the cluster and the app both have. The page shows the app's metrics. */
  readonly conflicts: readonly string[];
}

/** The page of a worker. */
export function clusterPage(collected: CollectedMetrics, limit: SeriesLimit): ClusterPage {
  const live = decode(collected.workers.map(({ body }) => body));
  return pageOf(collected, mergeFamilies(live, decode(collected.retired), limit));
}

/**
 * The page of a process without metrics of its own. It shows the samples that the limit left out of
 * earlier pages.
 */
export function foreignClusterPage(collected: CollectedMetrics, limit: SeriesLimit): ClusterPage {
  const live = decode(collected.workers.map(({ body }) => body));
  const all = [...live, [droppedFamily(limit.counts)]];
  return pageOf(collected, mergeFamilies(all, decode(collected.retired), limit));
}

/** Merges several bodies of ended workers into one with the same totals. */
export function foldBodies(bodies: readonly string[], limit: SeriesLimit): string {
  return encodeBody(foldFamilies(decode(bodies), limit));
}

function decode(bodies: readonly string[]): (readonly MetricFamily[])[] {
  return bodies.map(decodeBody).filter((families) => families !== undefined);
}

/**
 * The metrics of the cluster, then the metrics of its workers. If both have the same name, the
 * workers' metric is used, since it belongs to the app.
 *
 * If the primary did not answer, the current counts of the other workers are unknown. The page then
 * leaves counters out: a gap in a series is harmless, but Prometheus takes a lower value for a
 * restart.
 */
function pageOf(collected: CollectedMetrics, families: readonly MetricFamily[]): ClusterPage {
  const names = new Set(families.map(({ name }) => name));
  const cluster = clusterMetrics(collected);
  const shown = cluster.filter(
    ({ name, type }) =>
      !names.has(name) && (collected.snapshotAgeMs === undefined || type === 'gauge'),
  );
  return {
    families: [...shown, ...families],
    conflicts: cluster.map(({ name }) => name).filter((name) => names.has(name)),
  };
}
