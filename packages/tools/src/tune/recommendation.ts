import { percent } from '../output.js';
import type { Measurement, Setting } from './measurement.js';

/** A gain below this share does not count, because two runs of the same setting may differ by that much. */
export const MARGIN_RATIO = 0.05;

/** If event loops are busy for at most this share of the time, more workers do not help. */
const ROOM_UTILIZATION = 0.6;

/** If rounds differ from their median by more than this share, other programs were running. */
const NOISY_RATIO = 0.15;

/** A load generator whose event loop is busy for more than this share cannot send more requests. */
const GENERATOR_LIMIT = 0.9;

export interface Recommendation {
  readonly setting: Setting;
  /** The reason for the setting, in one sentence. */
  readonly reason: string;
  /** Reasons to doubt the measurements. */
  readonly caveats: readonly string[];
}

/** @returns `undefined` if requests failed with every setting. */
export function recommend(measured: readonly Measurement[]): Recommendation | undefined {
  const clean = measured.filter(({ failed }) => failed === 0);
  if (clean.length === 0) return undefined;
  const chosen = cheapest(clean);
  const { workers } = chosen.setting;
  return {
    setting: { workers, threads: chosen.threads },
    reason: reasonFor(chosen, clean),
    caveats: caveatsOf(measured),
  };
}

/**
 * The measurement with the fewest workers (and of these, the fewest threads) that has as much
 * throughput as the best, or idle event loops. If event loops were idle, a higher throughput with
 * more workers is chance.
 */
export function cheapest(measured: readonly Measurement[]): Measurement {
  const best = fastest(measured);
  return byCost(measured).find((each) => hasRoom(each) || gain(each, best) < margin(each, best))!;
}

/** Whether even the busiest event loop was often idle. If so, the route waits for something else. */
export function hasRoom({ threads, eventLoopUtilization }: Measurement): boolean {
  // Event loops say nothing about a route that runs in threads: they are always idle.
  return threads === undefined && (eventLoopUtilization ?? 1) <= ROOM_UTILIZATION;
}

function fastest(measured: readonly Measurement[]): Measurement {
  return measured.reduce((a, b) => (b.requestsPerSecond > a.requestsPerSecond ? b : a));
}

function byCost(measured: readonly Measurement[]): Measurement[] {
  return measured.toSorted(
    (a, b) => a.setting.workers - b.setting.workers || (a.threads ?? 0) - (b.threads ?? 0),
  );
}

function gain(from: Measurement, to: Measurement): number {
  return to.requestsPerSecond / from.requestsPerSecond - 1;
}

/** The minimum gain that counts. It is at least the spread of the rounds of each of the two settings. */
function margin(a: Measurement, b: Measurement): number {
  return Math.max(MARGIN_RATIO, a.spreadRatio, b.spreadRatio);
}

function reasonFor(chosen: Measurement, measured: readonly Measurement[]): string {
  const ordered = byCost(measured);
  const [least] = ordered;
  const more = ordered.slice(ordered.indexOf(chosen) + 1);
  const parts = [`${nameOf(chosen)} answered ${perSecond(chosen)}`];
  if (least !== chosen) {
    parts.push(`, ${(1 + gain(least!, chosen)).toFixed(2)} times as many as ${nameOf(least!)}`);
  }
  if (hasRoom(chosen)) {
    parts.push(
      `, with event loops busy for no more than ${percent(chosen.eventLoopUtilization!)} of the time: the route waits for something that is not a worker`,
    );
  }
  const best = more.length === 0 ? undefined : fastest(more);
  parts.push(
    best ? `; ${nameOf(best)} answered ${difference(chosen, best)}` : '; more were not tried',
  );
  return `${parts.join('')}.`;
}

function caveatsOf(measured: readonly Measurement[]): string[] {
  const failing = measured.filter(({ failed }) => failed > 0);
  const spread = Math.max(...measured.map(({ spreadRatio }) => spreadRatio));
  const busy = measured.filter((each) => each.generatorUtilization > GENERATOR_LIMIT);
  const isUnknown = measured.some(({ busyCores }) => busyCores === undefined);
  return [
    failing.length > 0 &&
      `requests failed with ${failing.map(nameOf).join(', ')}: left out of the comparison`,
    spread > NOISY_RATIO &&
      `rounds of the same setting differ by ${percent(spread)} from their middle: something else was running; measure again on a quiet machine, or with more --seconds`,
    busy.length > 0 &&
      `the load generator was the limit with ${busy.map(nameOf).join(', ')}: it shares the cores with the app, which may answer more; such a light route is better measured from another machine`,
    isUnknown &&
      'the CPU, and whether the route runs in threads, is not known: the app shows no metrics of nestjs-cluster (metrics: false?), or elsewhere (--metrics-path)',
  ].filter((caveat) => caveat !== false);
}

function nameOf({ setting, threads }: Measurement): string {
  const workers = setting.workers === 1 ? '1 worker' : `${setting.workers} workers`;
  if (threads === undefined) return workers;
  return `${workers} with ${threads} thread${threads === 1 ? '' : 's'}${setting.workers === 1 ? '' : ' each'}`;
}

function perSecond({ requestsPerSecond }: Measurement): string {
  return `${requestsPerSecond.toFixed(requestsPerSecond < 10 ? 1 : 0)} requests a second`;
}

function difference(chosen: Measurement, other: Measurement): string {
  const ratio = gain(chosen, other);
  if (ratio < 0) return `${percent(-ratio)} less`;
  const limit = margin(chosen, other);
  const more = `${percent(ratio)} more`;
  return ratio < limit ? `${more}, which is within the ${percent(limit)} of chance` : more;
}

/** The setting as variables for the app's environment. */
export function environmentOf({ workers, threads }: Setting): Record<string, string> {
  return {
    CLUSTER_WORKERS: String(workers),
    ...(threads !== undefined && { CLUSTER_THREADS: String(threads) }),
  };
}
