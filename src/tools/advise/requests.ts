import { decodeBody } from '../../observe/exposition/metrics-body.js';
import { type Buckets, quantile, since } from '../dashboard/histogram.js';

/** The answered requests of a worker, by the labels of their series. */
export type Requests = ReadonlyMap<string, Buckets>;

/** The requests of some workers between two readings. */
export interface Between {
  readonly ownP99Ms: number | null;
  readonly otherP99Ms: number | null;
  readonly count: number;
  readonly errors: number;
}

const DURATIONS = 'http_request_duration_seconds';

/** @param body the metrics of a worker, in the form in which processes send them. */
export function requestsOf(body: string): Requests {
  const { prefix, families } = decodeBody(body) ?? { prefix: '', families: [] };
  const family = families.find(({ name }) => name === `${prefix}${DURATIONS}`);
  const bounds = (family?.columns ?? []).map(({ label }) => /^le="(.*)"$/.exec(label)?.[1]);
  const bucketsOf = (row: readonly (number | null)[]): Buckets =>
    new Map(
      bounds.flatMap((bound, index) =>
        bound === undefined ? [] : [[bound === '+Inf' ? Infinity : Number(bound), row[index] ?? 0]],
      ),
    );
  return new Map([...(family?.series ?? [])].map(([labels, row]) => [labels, bucketsOf(row)]));
}

/**
 * The requests that were answered between two readings of each worker.
 *
 * @param route of the tried method, as `GET /orders/:id`, without prefixes and versions; `null` if
 *   the method is no handler.
 */
export function requestsBetween(
  readings: readonly (readonly [before: Requests, after: Requests])[],
  route: string | null,
): Between {
  const own = new Map<number, number>();
  const other = new Map<number, number>();
  let failed = 0;
  for (const [before, after] of readings) {
    for (const [labels, buckets] of after) {
      const added = since(before.get(labels) ?? new Map(), buckets) ?? buckets;
      const sums = isOf(route, labels) ? own : other;
      for (const [bound, count] of added) sums.set(bound, (sums.get(bound) ?? 0) + count);
      if (/(?:^|,)status_code="5\d\d"/.test(labels)) failed += countOf(added);
    }
  }
  const count = countOf(own) + countOf(other);
  return {
    ownP99Ms: p99(own),
    otherP99Ms: p99(other),
    count,
    errors: failed / Math.max(1, count),
  };
}

/** Whether a series is of a route. Its label has the prefix and the version of the app too. */
function isOf(route: string | null, labels: string): boolean {
  const [method, path = ''] = route?.split(' ') ?? [];
  if (method === undefined) return false;
  const isVerb = method === 'ALL' || labels.includes(`method="${method}"`);
  return isVerb && (/(?:^|,)route="([^"]*)"/.exec(labels)?.[1] ?? '').endsWith(path);
}

function p99(buckets: Buckets): number | null {
  const seconds = quantile(buckets, 0.99);
  return seconds === undefined ? null : seconds * 1_000;
}

function countOf(buckets: Buckets): number {
  return buckets.get(Infinity) ?? 0;
}
