/** A wait is cut into slices this long: a freeze that is shorter than one is not seen. */
export const SLICE_MS = 250;

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

/**
 * The rest of a wait after one of its slices. A slice that ends late means
 * that the primary stood still (suspend, SIGSTOP, a blocked event loop): it
 * counts as a punctual one. Messages of that time may lie unread, so at least
 * one more slice has to pass.
 */
export function leftAfterSlice(leftMs: number, sliceMs: number, elapsedMs: number): number {
  if (elapsedMs <= sliceMs + SLICE_MS) return leftMs - elapsedMs;
  return Math.max(leftMs - sliceMs, SLICE_MS);
}
