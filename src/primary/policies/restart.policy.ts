import type { RestartOptions } from '../../options/index.js';
import type { FailureCause } from '../../snapshot/index.js';

/** What is remembered of a slot's failures. */
export interface FailureHistory {
  /** When each failure within the window happened, oldest first; monotonic ms. */
  readonly recent: readonly number[];
  /** Failures since the last stable life. */
  readonly inARow: number;
}

export const NO_FAILURES: FailureHistory = { recent: [], inARow: 0 };

export interface RestartDecision {
  readonly delayMs: number;
  /** The slot is in a crash loop. */
  readonly degraded: boolean;
}

/** How a worker of the slot failed. */
export interface Failure {
  readonly cause: FailureCause;
  /** Time from ready to its end, 0 where it never was ready. */
  readonly livedMs: number;
}

/** The history after one more failure. */
export function recordFailure(
  history: FailureHistory,
  { cause, livedMs }: Failure,
  now: number,
  options: Required<RestartOptions>,
): FailureHistory {
  const recent = failuresInWindow(history, now, options);
  // A failure that ends a stable life is the first of a new row, not one of it.
  const stable = livedMs >= options.stableAfterMs;
  // Who kills a worker from outside says nothing of the app: it is no crash loop, and no row grows.
  if (cause === 'killed') return { recent, inARow: stable ? 0 : 1 };
  return {
    recent: [...recent, now].slice(-options.maxFailures),
    inARow: stable ? 0 : history.inARow + 1,
  };
}

/**
 * When the slot is started again: at once after a stable life, else after an
 * exponential backoff with jitter; in a crash loop after the longest delay.
 *
 * @param random 0..1, spreads slots that failed together.
 */
export function decideRestart(
  history: FailureHistory,
  now: number,
  options: Required<RestartOptions>,
  random: number,
): RestartDecision {
  const degraded = failuresInWindow(history, now, options).length >= options.maxFailures;
  if (history.inARow === 0 && !degraded) return { delayMs: 0, degraded };
  const backoffMs = degraded
    ? options.maxBackoffMs
    : Math.min(
        options.backoffMs * options.backoffFactor ** (history.inARow - 1),
        options.maxBackoffMs,
      );
  return { delayMs: backoffMs * (1 + options.jitterRatio * (2 * random - 1)), degraded };
}

function failuresInWindow(
  history: FailureHistory,
  now: number,
  options: Required<RestartOptions>,
): number[] {
  return history.recent.filter((at) => now - at < options.windowMs);
}
