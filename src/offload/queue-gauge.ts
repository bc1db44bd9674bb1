/** A queue that is full takes each call that gets a thread for room: that is no relief. */
const RELIEF_MS = 1_000;

/** Since when a queue has been full. */
export class QueueGauge {
  #since = 0;
  #last = -Infinity;

  /** To be called whenever it may be full. Monotonic ms. */
  note(full: boolean, now: number): void {
    if (!full) return;
    if (now - this.#last > RELIEF_MS) this.#since = now;
    this.#last = now;
  }

  /** How long it has been full, 0 where it is not. */
  fullForMs(full: boolean, now: number): number {
    this.note(full, now);
    return now - this.#last > RELIEF_MS ? 0 : now - this.#since;
  }
}
