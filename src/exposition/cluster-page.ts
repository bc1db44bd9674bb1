import type { CollectedMetrics } from '../snapshot/index.js';
import { clusterMetrics } from './cluster-metrics.js';
import { foldFamilies, mergeFamilies } from './merge-families.js';
import type { MetricFamily } from './metric-family.js';
import { decodeBody, encodeBody, type MetricsBody } from './metrics-body.js';
import { DroppedSamples, droppedFamily } from './series-limit.js';

/** What of {@link CollectedMetrics} the page says of the cluster. */
type Collected = Pick<CollectedMetrics, 'snapshot' | 'ageMs' | 'ages' | 'partial'>;

/** Everybody's metrics as those of one process. */
export function mergeBodies(
  bodies: readonly string[],
  retired: readonly string[],
  own: Omit<MetricsBody, 'families'>,
  limit: DroppedSamples = new DroppedSamples(own.maxSeries),
): MetricsBody {
  return { ...own, families: mergeFamilies(familiesOf(bodies), familiesOf(retired), limit) };
}

function familiesOf(bodies: readonly string[]): (readonly MetricFamily[])[] {
  return bodies.flatMap((text) => {
    const body = decodeBody(text);
    return body === undefined ? [] : [body.families];
  });
}

/**
 * As {@link mergeBodies}, for those who have no metrics of their own: what the workers say of theirs
 * holds.
 *
 * @param dropped what was left out before, by metric; added to.
 */
export function mergeForeignBodies(
  bodies: readonly string[],
  retired: readonly string[],
  dropped: Map<string, number>,
): MetricsBody {
  const live = bodies.map(decodeBody).filter((body) => body !== undefined);
  const gone = retired.map(decodeBody).filter((body) => body !== undefined);
  const { prefix = '', maxSeries = Infinity } = live[0] ?? gone[0] ?? {};
  const limit = new DroppedSamples(maxSeries, dropped);
  const families = mergeFamilies(
    [...live.map((body) => body.families), [droppedFamily(prefix, dropped)]],
    gone.map((body) => body.families),
    limit,
  );
  return { prefix, maxSeries, families };
}

/** Several bodies of workers that are gone as one that counts the same. */
export function foldBodies(
  bodies: readonly string[],
  own: Omit<MetricsBody, 'families'>,
  limit: DroppedSamples,
): string {
  return encodeBody({ ...own, families: foldFamilies(familiesOf(bodies), limit) });
}

/**
 * Every metric of the page: of the cluster, then of its workers. Of a name that
 * both have, the workers', since it is the app's.
 *
 * Where the primary did not answer, nothing is known of what others have
 * counted since. Counters are left out then: a gap in a series is harmless,
 * but Prometheus would take a fall for a restart.
 */
export function clusterPage(
  collected: Collected,
  { prefix, families }: MetricsBody,
): { readonly families: readonly MetricFamily[]; readonly conflicts: readonly string[] } {
  const names = new Set(families.map(({ name }) => name));
  const cluster = clusterMetrics(collected, prefix);
  const shown = cluster.filter(
    ({ name, type }) => !names.has(name) && (!collected.partial || type === 'gauge'),
  );
  return {
    families: [...shown, ...families],
    conflicts: cluster.map(({ name }) => name).filter((name) => names.has(name)),
  };
}
