import { percent } from '../output.js';
import { sum } from '../sum.js';
import type { Run } from './measure-run.js';

/** A smaller gain is ignored, because two runs with the same number of workers may differ by this ratio. */
const MARGIN_RATIO = 0.05;

/** Stops after this many numbers in a row without a gain. A single one may be noise. */
const STOP_AFTER = 2;

/** Up to this number, each step adds 1 worker. Beyond it, each step adds half the current number. */
const ONE_BY_ONE = 8;

/** At or below this event loop utilization, the route waits for something else, such as a database. */
const IDLE_UTILIZATION = 0.6;

/** If rounds differ from their median by more than this ratio, other programs were probably running. */
const NOISY_RATIO = 0.15;

/** Above this event loop utilization, the load generator cannot send more requests. */
const GENERATOR_LIMIT = 0.9;

/** The run with the median throughput among all runs with the same number of workers. */
export interface Measurement extends Run {
  /** The number of failed requests in all runs. */
  readonly failed: number;
  /** Half the difference between the best and the worst throughput of the runs, as a share of the median. */
  readonly spreadRatio: number;
}

export interface Recommendation {
  readonly workers: number;
  /** The reason for the number, in one sentence. */
  readonly reason: string;
  /** Further findings, and reasons why the measurements may be wrong. */
  readonly notes: readonly string[];
}

/** @param runs at least one run, all with the same number of workers. */
export function measurementOf(runs: readonly Run[]): Measurement {
  const sorted = runs.toSorted((a, b) => a.requestsPerSecond - b.requestsPerSecond);
  const median = sorted[Math.floor(sorted.length / 2)]!;
  const range = sorted.at(-1)!.requestsPerSecond - sorted[0]!.requestsPerSecond;
  return {
    ...median,
    failed: sum(runs.map(({ failed }) => failed)),
    spreadRatio: range / 2 / median.requestsPerSecond,
  };
}

/** The number of workers to measure next: 1, 2, … 8, 12, 18, … `max`; `undefined` if more do not help. */
export function nextWorkers(measured: readonly Measurement[], max: number): number | undefined {
  const last = measured.at(-1)?.workers ?? 0;
  if (last >= max || noLongerHelps(measured)) return undefined;
  return Math.min(max, last < ONE_BY_ONE ? last + 1 : Math.ceil(last * 1.5));
}

function noLongerHelps(measured: readonly Measurement[]): boolean {
  const before = measured.slice(0, -STOP_AFTER);
  if (before.length === 0) return false;
  const best = fastest(before);
  return measured.slice(-STOP_AFTER).every((each) => gain(best, each) < MARGIN_RATIO);
}

/**
 * Recommends the smallest number of workers whose throughput is within the margin of the best.
 *
 * @returns `undefined` if requests failed at every worker count.
 */
export function recommend(measured: readonly Measurement[]): Recommendation | undefined {
  const clean = measured.filter(({ failed }) => failed === 0);
  const [first] = clean;
  if (first === undefined) return undefined;
  const best = fastest(clean);
  const chosen = clean.find((each) => gain(each, best) < margin(each, best))!;
  const parts = [`${nameOf(chosen)} answered ${chosen.requestsPerSecond.toFixed(1)} requests/s`];
  if (chosen !== first) {
    parts.push(`${(1 + gain(first, chosen)).toFixed(2)} times as many as ${nameOf(first)}`);
  }
  if (chosen !== best) {
    const limit = percent(margin(chosen, best));
    parts.push(
      `and ${nameOf(best)} ${percent(gain(chosen, best))} more, within the margin of ${limit}`,
    );
  }
  const { workers } = chosen;
  return { workers, reason: `${parts.join(', ')}.`, notes: notesOf(measured, chosen) };
}

function fastest(measured: readonly Measurement[]): Measurement {
  return measured.reduce((a, b) => (b.requestsPerSecond > a.requestsPerSecond ? b : a));
}

function gain(from: Measurement, to: Measurement): number {
  return to.requestsPerSecond / from.requestsPerSecond - 1;
}

/** The minimum relevant gain between two measurements: at least the spread of each. */
function margin(a: Measurement, b: Measurement): number {
  return Math.max(MARGIN_RATIO, a.spreadRatio, b.spreadRatio);
}

function notesOf(measured: readonly Measurement[], chosen: Measurement): string[] {
  const failing = measured.filter(({ failed }) => failed > 0);
  const spread = Math.max(...measured.map(({ spreadRatio }) => spreadRatio));
  const busy = measured.filter((each) => each.generatorUtilization > GENERATOR_LIMIT);
  return [
    failing.length > 0 && `excluded ${failing.map(nameOf).join(', ')}, because requests failed`,
    spread > NOISY_RATIO &&
      `rounds with the same number of workers differ by ${percent(spread)} from their median: other programs were probably running; measure again on an idle machine, or with more --seconds`,
    busy.length > 0 &&
      `the load generator was the bottleneck with ${busy.map(nameOf).join(', ')}: it shares the cores with the app, so the app may be faster; for such a light route, generate the load on another machine`,
    chosen.eventLoopUtilization <= IDLE_UTILIZATION &&
      `the event loops were busy at most ${percent(chosen.eventLoopUtilization)} of the time: the route waits for something else, such as a database`,
  ].filter((note) => note !== false);
}

function nameOf({ workers }: Measurement): string {
  return workers === 1 ? '1 worker' : `${workers} workers`;
}
