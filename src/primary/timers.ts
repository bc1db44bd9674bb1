import type { Timer } from '../decide/cluster-state.js';
import { keyOf } from '../decide/step.js';

/** The timers of the core. Arming a timer again restarts it. */
export class Timers {
  readonly #armed = new Map<string, () => void>();

  constructor(private readonly due: (timer: Timer) => void) {}

  arm(timer: Timer, ms: number): void {
    this.disarm(timer);
    const key = keyOf(timer);
    const fire = (): void => {
      this.#armed.delete(key);
      this.due(timer);
    };
    this.#armed.set(key, begin(timer, ms, fire));
  }

  disarm(timer: Timer): void {
    const key = keyOf(timer);
    this.#armed.get(key)?.();
    this.#armed.delete(key);
  }

  stop(): void {
    for (const cancel of this.#armed.values()) cancel();
    this.#armed.clear();
  }
}

function begin(timer: Timer, ms: number, action: () => void): () => void {
  // A worker's time limit must not expire while the primary is stopped.
  if ('worker' in timer) return afterRunning(ms, action);
  const timeout = setTimeout(action, ms);
  return () => clearTimeout(timeout);
}

/** A wait is divided into slices of this length. Shorter stops of the process are not detected. */
export const SLICE_MS = 250;

/**
 * Runs `action` after `ms`. Time while the machine, the process group or the primary is stopped
 * does not count.
 *
 * @returns a function that cancels it.
 */
export function afterRunning(ms: number, action: () => void): () => void {
  let leftMs = ms;
  let timer: NodeJS.Timeout;
  const next = (): void => {
    const startedAt = performance.now();
    const sliceMs = Math.min(leftMs, SLICE_MS);
    timer = setTimeout(() => {
      leftMs = leftAfterSlice(leftMs, sliceMs, performance.now() - startedAt);
      // A timer may fire a fraction of a millisecond early, and no timer can wait for that fraction.
      if (leftMs < 1) action();
      else next();
    }, sliceMs);
  };
  next();
  return () => clearTimeout(timer);
}

/**
 * The time left in a wait after a slice. If the slice ended late, the primary was stopped (suspend,
 * SIGSTOP, a blocked event loop), so only the slice's planned length counts. Messages that arrived
 * during the stop may be unread, so at least one more slice follows.
 */
function leftAfterSlice(leftMs: number, sliceMs: number, elapsedMs: number): number {
  if (elapsedMs <= sliceMs + SLICE_MS) return leftMs - elapsedMs;
  return Math.max(leftMs - sliceMs, SLICE_MS);
}
