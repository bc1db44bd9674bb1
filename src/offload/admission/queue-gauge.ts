/** A queue counts as full until it has had room for this long, in ms, because each call that starts makes room briefly. */
const RELIEF_MS = 1_000;

/** Measures how long a queue has been full. */
export class QueueGauge {
  /** When the queue became full, in monotonic ms; `undefined` if it is not full. */
  #fullSince: number | undefined;
  /** When the full queue last got room, in monotonic ms. */
  #roomSince: number | undefined;

  /** Must be called at every change of the queue. */
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

  /** How long the queue has been full, in ms; 0 if it is not full. */
  fullForMs(full: boolean, now: number): number {
    this.note(full, now);
    return this.#fullSince === undefined ? 0 : now - this.#fullSince;
  }
}
