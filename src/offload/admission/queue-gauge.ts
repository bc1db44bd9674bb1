/** Room for this long ends a shortage. Room for one call comes with each call that gets a thread. */
const RELIEF_MS = 1_000;

/** Since when a queue has been full. */
export class QueueGauge {
  /** Monotonic ms; `undefined` where it is not full. */
  #fullSince: number | undefined;
  /** There is room again, which may not last. */
  #roomSince: number | undefined;

  /** To be called with every change. */
  note(full: boolean, now: number): void {
    if (this.#roomSince !== undefined && now - this.#roomSince > RELIEF_MS) {
      this.#fullSince = undefined;
    }
    if (full) {
      this.#fullSince ??= now;
      this.#roomSince = undefined;
    } else {
      this.#roomSince ??= now;
    }
  }

  /** How long it has been full, 0 where it is not. */
  fullForMs(full: boolean, now: number): number {
    this.note(full, now);
    return this.#fullSince === undefined ? 0 : now - this.#fullSince;
  }
}
