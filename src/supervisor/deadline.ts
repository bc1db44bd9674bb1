/** A wait is divided into slices of this length. A shorter pause of the process is not detected. */
export const SLICE_MS = 250;

/**
 * Runs `action` after the primary has been running for `ms`. Does not count the time for which the
 * machine, the process group or the primary was stopped.
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
      // A timer may fire a fraction of a millisecond early. No timer can wait for that fraction.
      if (this.#leftMs < 1) this.action();
      else this.#next();
    }, sliceMs);
  }
}

/**
 * The time that is left of a wait after one of its slices. If the slice ended late, the primary was
 * stopped (suspend, SIGSTOP, a blocked event loop), so only the planned length of the slice counts.
 * Messages that arrived during the stop may be unread, so at least one more slice follows.
 */
export function leftAfterSlice(leftMs: number, sliceMs: number, elapsedMs: number): number {
  if (elapsedMs <= sliceMs + SLICE_MS) return leftMs - elapsedMs;
  return Math.max(leftMs - sliceMs, SLICE_MS);
}
