import { samplesOf } from '../endpoints.js';

/** The cumulative counts of a histogram, summed over its series, by upper bound in seconds. */
export type Buckets = ReadonlyMap<number, number>;

/**
 * The buckets of a histogram on a page of metrics.
 *
 * @param without a route whose series are left out.
 */
export function bucketsOf(page: string, name: string, without: string): Buckets {
  const buckets = new Map<number, number>();
  for (const { labels, value } of samplesOf(page, `${name}_bucket`)) {
    const [, bound] = /(?:^|,)le="([^"]*)"/.exec(labels) ?? [];
    if (bound === undefined || labels.includes(`route="${without}"`)) continue;
    const seconds = bound === '+Inf' ? Infinity : Number(bound);
    buckets.set(seconds, (buckets.get(seconds) ?? 0) + value);
  }
  return buckets;
}

/** The counts between two readings. `undefined` if the counters were reset. */
export function since(before: Buckets, now: Buckets): Buckets | undefined {
  const between = new Map<number, number>();
  for (const [bound, count] of now) {
    const more = count - (before.get(bound) ?? 0);
    if (more < 0) return undefined;
    between.set(bound, more);
  }
  return between;
}

/**
 * A quantile in seconds, computed as by `histogram_quantile` in Prometheus: linear within a bucket.
 * `undefined` if nothing was counted.
 */
export function quantile(buckets: Buckets, share: number): number | undefined {
  const sorted = [...buckets].toSorted(([a], [b]) => a - b);
  const total = sorted.at(-1)?.[1] ?? 0;
  if (total === 0) return undefined;
  const rank = share * total;
  let [lower, below] = [0, 0];
  for (const [bound, count] of sorted) {
    if (count >= rank) {
      if (bound === Infinity) return lower;
      return lower + (bound - lower) * ((rank - below) / Math.max(1, count - below));
    }
    [lower, below] = [bound, count];
  }
  return lower;
}
