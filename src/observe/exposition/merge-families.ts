import type { MetricFamily } from './metric-family.js';
import { MergedFamily } from './merged-family.js';
import type { SeriesLimit } from './series-limit.js';

/** Metrics with this aggregator mean nothing for several processes. */
const OMIT = 'omit';

/**
 * Merges the metrics of several workers. The counts of ended workers stay included: a counter, a
 * histogram and the sum and count of a summary never fall. A gauge includes only living workers.
 */
export function mergeFamilies(
  live: readonly (readonly MetricFamily[])[],
  retired: readonly (readonly MetricFamily[])[],
  limit: SeriesLimit,
): MetricFamily[] {
  return [...merge(live, retired, limit).values()].map((merged) => merged.shown());
}

/** The same of workers that are gone, to be merged again later: with what a number alone would lose. */
export function foldFamilies(
  retired: readonly (readonly MetricFamily[])[],
  limit: SeriesLimit,
): MetricFamily[] {
  return [...merge([], retired, limit).values()].flatMap((merged) => {
    const residue = merged.residue();
    return residue === undefined ? [merged.family()] : [merged.family(), residue];
  });
}

function merge(
  live: readonly (readonly MetricFamily[])[],
  retired: readonly (readonly MetricFamily[])[],
  limit: SeriesLimit,
): ReadonlyMap<string, MergedFamily> {
  const merged = new Map<string, MergedFamily>();
  const declare = (family: MetricFamily): void => {
    if (!merged.has(family.name)) merged.set(family.name, new MergedFamily(family, limit));
  };
  // The living workers decide the type of a metric, or else the worker that ended last: a new
  // release may have changed it.
  for (const families of live) {
    for (const family of families) if (family.aggregator !== OMIT) declare(family);
  }
  for (const families of retired.toReversed()) {
    for (const family of families) if (doesAccumulate(family)) declare(family);
  }
  // The series of ended workers come first anyway: if there are too many series, the older ones
  // stay.
  for (const families of retired) {
    for (const family of families) {
      if (doesAccumulate(family)) merged.get(family.name)!.add(family, true);
    }
  }
  for (const families of live) {
    for (const family of families) merged.get(family.name)?.add(family, false);
  }
  return merged;
}

/** Whether the family's values only grow, so that the values of ended workers belong to the total. */
function doesAccumulate({ type, aggregator }: MetricFamily): boolean {
  return type !== 'gauge' && aggregator === 'sum';
}
