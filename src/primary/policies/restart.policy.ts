import type { RestartOptions } from '../../options/index.js';
import type { FailureCause } from '../../snapshot/index.js';

/** What is remembered of a slot's failures. */
export interface FailureHistory {
  /** When each failure within the window happened, oldest first; monotonic ms. */
  readonly recent: readonly number[];
  /** Failures since the last stable life. */
  readonly inARow: number;
  /** The slot is in a crash loop, until a worker of it has lived stably. */
  readonly degraded: boolean;
}

export const NO_FAILURES: FailureHistory = { recent: [], inARow: 0, degraded: false };

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
  const before = history.recent.filter((at) => now - at < options.windowMs);
  const stable = livedMs >= options.stableAfterMs;
  const wasDegraded = history.degraded && !stable;
  // Who kills a worker from outside says nothing of the app: it is no crash loop, and no row grows.
  if (cause === 'killed') return { recent: before, inARow: stable ? 0 : 1, degraded: wasDegraded };
  const recent = [...before, now].slice(-options.maxFailures);
  return {
    recent,
    // A failure that ends a stable life is the first of a new row, not one of it.
    inARow: stable ? 0 : history.inARow + 1,
    // While it is retried at the longest delay, few failures fall into the window: it stays degraded.
    degraded: wasDegraded || recent.length >= options.maxFailures,
  };
}

/**
 * How long the slot waits for its next worker, in ms: not at all after a stable
 * life, else an exponential backoff with jitter; in a crash loop the longest.
 *
 * @param random 0..1, spreads slots that failed together.
 */
export function restartDelayMs(
  { inARow, degraded }: FailureHistory,
  options: Required<RestartOptions>,
  random: number,
): number {
  const { backoffMs, backoffFactor, maxBackoffMs, jitterRatio } = options;
  if (inARow === 0 && !degraded) return 0;
  const exponent = Math.min(Math.max(inARow - 1, 0), MAX_EXPONENT);
  const backoff = degraded ? maxBackoffMs : backoffMs * backoffFactor ** exponent;
  return Math.min(
    Math.min(backoff, maxBackoffMs) * (1 + jitterRatio * (2 * random - 1)),
    maxBackoffMs,
  );
}

/** Beyond it every factor above 1 has reached the longest delay; without it 0 × Infinity is NaN. */
const MAX_EXPONENT = 64;
