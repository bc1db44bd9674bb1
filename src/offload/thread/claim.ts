/**
 * Memory that the event loop shares with a thread to which it has sent a call ahead. Either the
 * thread claims the call first and begins it, or the event loop claims it first and takes it back.
 */
export type Claim = Int32Array;

export function newClaim(): Claim {
  return new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
}

/** Claims the call. @returns whether it was not claimed before. */
export function isFirstToClaim(claim: Claim): boolean {
  return Atomics.exchange(claim, 0, 1) === 0;
}
