import type { RestartOptions } from '../../../contract/options/index.js';
import type { FailureCause } from '../../../contract/snapshot/index.js';

/** What is remembered of a slot's failures. */
export interface FailureHistory {
  /** Failures since the last stable life: the backoff grows with them. */
  readonly inARow: number;
  /** Failures by the app's own fault since the last life that was twice as long as a stable one. */
  readonly shortLives: number;
  /** The worker that failed last had been ready, so its boot did not fail. */
  readonly wasReady: boolean;
  /** The slot is in a crash loop, until a worker of it has lived twice as long as a stable one. */
  readonly degraded: boolean;
}

export const NO_FAILURES: FailureHistory = {
  inARow: 0,
  shortLives: 0,
  wasReady: false,
  degraded: false,
};

/** How a worker of the slot failed. */
export interface Failure {
  readonly cause: FailureCause;
  /** Time from ready to its end; `undefined` if it never was ready. */
  readonly livedMs: number | undefined;
  /** Whether there was a process at all. Default true. */
  readonly started?: boolean;
}

/** How long a worker must live for its slot's past to be forgotten, in ms. */
export function recoveryMs(options: Required<RestartOptions>): number {
  return RECOVERY_FACTOR * options.stableAfterMs;
}

/** The history after one more failure. */
export function recordFailure(
  history: FailureHistory,
  { cause, livedMs, started = true }: Failure,
  options: Required<RestartOptions>,
): FailureHistory {
  const recovered = livedMs !== undefined && livedMs >= recoveryMs(options);
  const before = recovered ? 0 : history.shortLives;
  // A kill from outside, or a machine short of descriptors or memory, says nothing about the app.
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
 * How long the slot waits for its next worker, in ms: not at all after a stable
 * life, else an exponential backoff with jitter. The backoff stays short while
 * workers come up, since the app serves between two failures; it grows to
 * `maxBackoffMs` while they do not.
 *
 * @param random 0..1, spreads slots that failed together.
 * @param together restarts of other slots within the last {@link TOGETHER_MS}: workers that a
 *   shared cause ended (a database that went away) must not all come back in one moment.
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

/** The random share that is added to a wait or taken from it. */
const JITTER_RATIO = 0.2;

/** Slots that restart within this time of each other restart together. */
export const TOGETHER_MS = 1_000;

/** Longest wait after a life that was ready. A slot then starts one worker a second at most. */
const QUICK_START_MS = 1_000;

/** A cadence of failures just above the stable time must not pass for health. */
const RECOVERY_FACTOR = 2;

/** Beyond it every backoff has reached the longest delay; without it 0 × Infinity is NaN. */
const MAX_EXPONENT = 64;
