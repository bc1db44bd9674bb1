import type { MetricFamily } from './metric-family.js';
import { MergedFamily } from './merged-family.js';
import type { SeriesLimit } from './series-limit.js';

/** Metrics with this aggregator mean nothing for several processes. */
const OMIT = 'omit';

/**
 * Metrics of several workers as those of one. What workers that are gone had
 * counted stays in: a counter, a histogram and the sum and count of a summary
 * never fall. Of a gauge only the living count.
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
  // What a metric is, the living say, and else who lived last: a new release may have changed it.
  for (const families of live) {
    for (const family of families) if (family.aggregator !== OMIT) declare(family);
  }
  for (const families of retired.toReversed()) {
    for (const family of families) if (doesAccumulate(family)) declare(family);
  }
  // Their series come first all the same: of more than there is room for, those stay that have been there.
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

/** Whether the family has values that only ever grow, so that those of the dead belong to the total. */
function doesAccumulate({ type, aggregator }: MetricFamily): boolean {
  return type !== 'gauge' && aggregator === 'sum';
}
