import { decodeBody } from '../../observe/exposition/metrics-body.js';
import { type Buckets, quantile, since } from '../dashboard/histogram.js';

/** The answered requests of a worker, by the labels of their series. */
export type Requests = ReadonlyMap<string, Buckets>;

/** The requests of some workers between two readings. */
export interface Between {
  readonly ownP99Ms: number | null;
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
 * @param route the route of the tried method, such as `GET /orders/:id`, without prefixes and
 *   versions; `null` if the method is not a handler.
 */
export function requestsBetween(
  readings: readonly (readonly [before: Requests, after: Requests])[],
  route: string | null,
): Between {
  const own = new Map<number, number>();
  let [count, failed] = [0, 0];
  for (const [before, after] of readings) {
    for (const [labels, buckets] of after) {
      const added = since(before.get(labels) ?? new Map(), buckets) ?? buckets;
      const all = added.get(Infinity) ?? 0;
      count += all;
      if (/(?:^|,)status_code="5\d\d"/.test(labels)) failed += all;
      if (!isOf(route, labels)) continue;
      for (const [bound, within] of added) own.set(bound, (own.get(bound) ?? 0) + within);
    }
  }
  const seconds = quantile(own, 0.99);
  const ownP99Ms = seconds === undefined ? null : seconds * 1_000;
  return { ownP99Ms, count, errors: failed / Math.max(1, count) };
}

/** Whether a series is of a route. Its label has the prefix and the version of the app too. */
function isOf(route: string | null, labels: string): boolean {
  const [method, path = ''] = route?.split(' ') ?? [];
  if (method === undefined) return false;
  const isVerb = method === 'ALL' || labels.includes(`method="${method}"`);
  return isVerb && (/(?:^|,)route="([^"]*)"/.exec(labels)?.[1] ?? '').endsWith(path);
}
