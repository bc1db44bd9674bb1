/** A wait is cut into slices this long: a freeze that is shorter than one is not seen. */
export const SLICE_MS = 250;

/**
 * The rest of a wait after one of its slices. A slice that ends late means
 * that the primary stood still (suspend, SIGSTOP, a blocked event loop): it
 * counts as a punctual one. Messages of that time may lie unread, so at least
 * one more slice has to pass.
 *
 * @param leftMs before the slice.
 * @param sliceMs as it was planned.
 * @param elapsedMs as it was.
 */
export function leftAfterSlice(leftMs: number, sliceMs: number, elapsedMs: number): number {
  if (elapsedMs <= sliceMs + SLICE_MS) return leftMs - elapsedMs;
  return Math.max(leftMs - sliceMs, SLICE_MS);
}
