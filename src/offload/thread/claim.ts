/**
 * Memory that the event loop shares with the thread to which it has sent a call ahead. The first of
 * the two to claim the call has it: the thread begins it, or the event loop takes it back.
 */
export type Claim = Int32Array;

export function newClaim(): Claim {
  return new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
}

/** @returns whether nobody had claimed it before. */
export function isFirstToClaim(claim: Claim): boolean {
  return Atomics.exchange(claim, 0, 1) === 0;
}
