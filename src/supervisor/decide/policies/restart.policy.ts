import type { RestartOptions } from '../../../contract/options/index.js';
import type { FailureCause } from '../../../contract/snapshot/index.js';

/** The history of a slot's failures. */
export interface FailureHistory {
  /** The number of failures since a worker last lived for `stableAfterMs`. The backoff grows with it. */
  readonly inARow: number;
  /** The number of failures by the app's own fault since a worker lived for {@link recoveryMs}. */
  readonly shortLives: number;
  /** Whether the worker that failed last had been ready. */
  readonly wasReady: boolean;
  /** Whether the slot is in a crash loop. A worker that lives for {@link recoveryMs} ends it. */
  readonly degraded: boolean;
}

export const NO_FAILURES: FailureHistory = {
  inARow: 0,
  shortLives: 0,
  wasReady: false,
  degraded: false,
};

export interface Failure {
  readonly cause: FailureCause;
  /** The time from ready to the worker's end, in ms; `undefined` if the worker never was ready. */
  readonly livedMs: number | undefined;
  /** Whether the process could be started. Default true. */
  readonly started?: boolean;
}

/** The time that a worker must live until its slot's failures are forgotten, in ms. */
export function recoveryMs(options: Required<RestartOptions>): number {
  return RECOVERY_FACTOR * options.stableAfterMs;
}

export function recordFailure(
  history: FailureHistory,
  { cause, livedMs, started = true }: Failure,
  options: Required<RestartOptions>,
): FailureHistory {
  const recovered = livedMs !== undefined && livedMs >= recoveryMs(options);
  const before = recovered ? 0 : history.shortLives;
  // A kill from outside, or a lack of descriptors or memory, is not the app's fault and is not counted.
  const shortLives = cause === 'killed' || !started ? before : before + 1;
  const stable = livedMs !== undefined && livedMs >= options.stableAfterMs;
  return {
    inARow: stable ? 0 : history.inARow + 1,
    shortLives,
    wasReady: livedMs !== undefined,
    degraded: shortLives >= options.maxFailures,
  };
}

/**
 * The delay before the slot's next worker, in ms. If the last worker was stable, the delay is 0, or
 * short and random if other slots restart too. Otherwise it is an exponential backoff with jitter.
 * The backoff stays short if the last worker was ready, because the app serves between two failures.
 * If the last worker never was ready, the backoff grows to `maxBackoffMs`.
 *
 * @param random 0..1, spreads slots that failed together.
 * @param together the number of restarts in the last {@link TOGETHER_MS}. If one cause ended many
 *   workers (a lost database), the new workers must not all start at the same moment.
 */
export function restartDelayMs(
  { inARow, wasReady }: FailureHistory,
  options: Required<RestartOptions>,
  random: number,
  together = 0,
): number {
  const { backoffMs, maxBackoffMs } = options;
  if (inARow === 0) return random * Math.min(together * backoffMs, maxBackoffMs, TOGETHER_MS);
  const quickMs = Math.max(backoffMs, QUICK_START_MS);
  const longestMs = wasReady ? Math.min(quickMs, maxBackoffMs) : maxBackoffMs;
  const backoff = backoffMs * BACKOFF_FACTOR ** Math.min(inARow - 1, MAX_EXPONENT);
  return Math.min(Math.min(backoff, longestMs) * (1 + JITTER_RATIO * (2 * random - 1)), longestMs);
}

const BACKOFF_FACTOR = 2;

/** The maximum random share that is added to a delay or taken from it. */
const JITTER_RATIO = 0.2;

/** Restarts within this time count as happening together. */
export const TOGETHER_MS = 1_000;

/** The maximum delay after a worker that was ready, unless `backoffMs` is longer. */
const QUICK_START_MS = 1_000;

/** Above 1, so that workers that always fail just after the stable time count as failing. */
const RECOVERY_FACTOR = 2;

/** At this exponent every backoff is at its maximum. A higher exponent could give 0 × Infinity = NaN. */
const MAX_EXPONENT = 64;
