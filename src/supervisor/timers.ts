import type { Timer } from './decide/timer.js';
import { keyOf } from './decide/step.js';
import { Deadline } from './deadline.js';

/** The timers of the core. A timer that is armed again begins anew. */
export class Timers {
  readonly #armed = new Map<string, () => void>();

  /** @param due gets each timer when its time is over. */
  constructor(private readonly due: (timer: Timer) => void) {}

  arm(timer: Timer, ms: number): void {
    this.disarm(timer);
    const key = keyOf(timer);
    this.#armed.set(
      key,
      begin(timer, ms, () => {
        this.#armed.delete(key);
        this.due(timer);
      }),
    );
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

/** @returns a function that cancels the timer. */
function begin(timer: Timer, ms: number, action: () => void): () => void {
  // A worker's time does not pass while the primary is stopped.
  if ('worker' in timer) {
    const deadline = new Deadline(ms, action);
    return () => deadline.cancel();
  }
  const timeout = setTimeout(action, ms);
  return () => clearTimeout(timeout);
}
