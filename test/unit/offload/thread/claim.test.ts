import { describe, expect, it } from 'vitest';
import { isFirstToClaim, newClaim } from '../../../../src/offload/thread/claim.js';

describe('a call that was sent ahead', () => {
  it('belongs to the first who claims it, in whichever thread: never to both', () => {
    const claim = newClaim();
    const inTheThread = structuredClone(claim);
    expect(isFirstToClaim(inTheThread)).toBe(true);
    expect([isFirstToClaim(claim), isFirstToClaim(inTheThread)]).toEqual([false, false]);
  });
});
