import type { RestartOptions } from '../../options/index.js';
import type { FailureCause } from '../../snapshot/index.js';

/** What is remembered of a slot's failures. */
export interface FailureHistory {
  /** When each failure within the window happened, oldest first; monotonic ms. */
  readonly recent: readonly number[];
  /** The same of workers that were killed from outside. */
  readonly kills: readonly number[];
  /** Failures since the last stable life. */
  readonly inARow: number;
  /** Failures since the last life that was twice as long as a stable one. */
  readonly shortLives: number;
  /** The slot is in a crash loop, until a worker of it has lived twice as long as a stable one. */
  readonly degraded: boolean;
}

export const NO_FAILURES: FailureHistory = {
  recent: [],
  kills: [],
  inARow: 0,
  shortLives: 0,
  degraded: false,
};

/** How a worker of the slot failed. */
export interface Failure {
  readonly cause: FailureCause;
  /** Time from ready to its end, 0 where it never was ready. */
  readonly livedMs: number;
  /** Whether there was a process at all. Default true. */
  readonly started?: boolean;
}

/** How long a worker must live for its slot's past to be forgotten, in ms. */
export function recoveryMs(options: Required<RestartOptions>): number {
  return RECOVERY_FACTOR * options.stableAfterMs;
}

/** Failures of all slots within the window that are a crash loop of whichever fails next. */
export function clusterBudget(options: Required<RestartOptions>, workers: number): number {
  // With few workers the budget of one slot is the larger one: it is what a slot was promised.
  return Math.max(2 * workers, options.maxFailures);
}

/**
 * Whether the failures of all slots within the window are a crash loop of
 * whichever fails next. Each slot counts for its share of the budget at most:
 * one that fails over and over does not use up what the others are allowed.
 *
 * @param failures of each slot within the window.
 */
export function isOverBudget(
  failures: readonly number[],
  options: Required<RestartOptions>,
): boolean {
  const budget = clusterBudget(options, failures.length);
  const share = Math.ceil(budget / failures.length);
  return failures.reduce((sum, each) => sum + Math.min(each, share), 0) >= budget;
}

/** What is left of a list of times at `now`. */
export function withinWindow(
  times: readonly number[],
  now: number,
  options: Required<RestartOptions>,
): readonly number[] {
  return times.filter((at) => now - at < options.windowMs);
}

/**
 * The history after one more failure.
 *
 * @param overBudget the failures of all slots together are too many.
 */
export function recordFailure(
  history: FailureHistory,
  { cause, livedMs, started = true }: Failure,
  now: number,
  options: Required<RestartOptions>,
  overBudget = false,
): FailureHistory {
  const before = withinWindow(history.recent, now, options);
  const kills = withinWindow(history.kills, now, options);
  const stable = livedMs >= options.stableAfterMs;
  const recovered = livedMs >= recoveryMs(options);
  const wasDegraded = history.degraded && !recovered;
  // Who kills a worker from outside says nothing of the app: it is no crash loop, and no row grows.
  if (cause === 'killed') {
    return {
      recent: before,
      kills: [...kills, now].slice(-MAX_KILLS_REMEMBERED),
      inARow: stable ? 0 : 1,
      shortLives: recovered ? 0 : history.shortLives,
      degraded: wasDegraded,
    };
  }
  // A machine short of descriptors, processes or memory says nothing of the app either, but must
  // not be asked ever again at once.
  if (!started) return { ...history, recent: before, kills, inARow: history.inARow + 1 };
  const recent = [...before, now].slice(-options.maxFailures);
  const shortLives = recovered ? 1 : history.shortLives + 1;
  return {
    recent,
    kills,
    // A failure that ends a stable life is the first of a new row, not one of it.
    inARow: stable ? 0 : history.inARow + 1,
    shortLives,
    // While it is retried at the longest delay, few failures fall into the window: it stays degraded.
    // The row of short lives finds who dies each time just after it counts as stable.
    degraded:
      wasDegraded ||
      overBudget ||
      recent.length >= options.maxFailures ||
      shortLives >= options.maxFailures,
  };
}

/**
 * How long the slot waits for its next worker, in ms: not at all after a stable
 * life, else an exponential backoff with jitter; in a crash loop the longest.
 *
 * @param random 0..1, spreads slots that failed together.
 * @param together restarts of other slots within the last {@link TOGETHER_MS}: workers that a
 *   shared cause ended (a database that went away) must not all come back in one moment.
 */
export function restartDelayMs(
  { inARow, kills, degraded }: FailureHistory,
  options: Required<RestartOptions>,
  random: number,
  together = 0,
): number {
  const { backoffMs, backoffFactor, maxBackoffMs, jitterRatio } = options;
  // A few kills are an operator's business; a storm of them must not become one of forks.
  const storm = Math.max(0, kills.length - FREE_KILLS);
  if (inARow === 0 && !degraded && storm === 0) {
    return random * Math.min(together * backoffMs, maxBackoffMs, TOGETHER_MS);
  }
  const exponent = Math.min(Math.max(inARow - 1, storm, 0), MAX_EXPONENT);
  const backoff = degraded ? maxBackoffMs : backoffMs * backoffFactor ** exponent;
  return Math.min(
    Math.min(backoff, maxBackoffMs) * (1 + jitterRatio * (2 * random - 1)),
    maxBackoffMs,
  );
}

/** Slots that restart within this time of each other restart together. */
export const TOGETHER_MS = 1_000;

/** A cadence of failures just above the stable time must not pass for health. */
const RECOVERY_FACTOR = 2;

/** Kills of a slot within the window that are answered without a growing delay. */
const FREE_KILLS = 20;

/** Beyond it every factor above 1 has reached the longest delay; without it 0 × Infinity is NaN. */
const MAX_EXPONENT = 64;

const MAX_KILLS_REMEMBERED = FREE_KILLS + MAX_EXPONENT;
