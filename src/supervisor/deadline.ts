import { leftAfterSlice, SLICE_MS } from './decide/policies/deadline.policy.js';

/**
 * Runs `action` once the primary has been awake for `ms`: a time in which the
 * machine, the group or the primary stood still is not held against a worker.
 */
export class Deadline {
  #leftMs: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    ms: number,
    private readonly action: () => void,
  ) {
    this.#leftMs = ms;
    this.#next();
  }

  cancel(): void {
    clearTimeout(this.#timer);
  }

  #next(): void {
    const startedAt = performance.now();
    const sliceMs = Math.min(this.#leftMs, SLICE_MS);
    this.#timer = setTimeout(() => {
      this.#leftMs = leftAfterSlice(this.#leftMs, sliceMs, performance.now() - startedAt);
      // A timer may come a fraction of a millisecond early, and knows no fractions.
      if (this.#leftMs < 1) this.action();
      else this.#next();
    }, sliceMs);
  }
}
