import { describe, expect, it } from 'vitest';
import { NO_PLACE, Offers } from '../../../../src/offload/thread/offers.js';

describe('an offer', () => {
  it('is begun by its thread when that has ended its call, or taken back: never both', () => {
    const offers = Offers.of(2);
    offers.make(0, 1, 1);
    offers.claim(0);
    expect(offers.takeBack(0, 1)).toBe(false);
    expect(offers.accept(0, 1)).toBe(true);
    offers.make(0, 2, 2);
    expect(offers.takeBack(0, 2)).toBe(true);
    offers.claim(0);
    expect(offers.accept(0, 2)).toBe(false);
  });

  it('is taken up by a thread that has nothing else to do', () => {
    const offers = Offers.of(1);
    offers.make(0, 1, 1);
    expect(offers.accept(0, 1)).toBe(true);
    expect(offers.takeBack(0, 1)).toBe(false);
  });

  it('that has begun is still known when the next one is made, and that one is not begun with it', () => {
    const offers = Offers.of(1);
    offers.make(0, 1, 1);
    offers.claim(0);
    offers.make(0, 2, 2);
    expect(offers.accept(0, 1)).toBe(true);
    expect(offers.takeBack(0, 2)).toBe(true);
  });

  it('waits while an older one was made to another thread', () => {
    const offers = Offers.of(3);
    offers.make(0, 1, 7);
    offers.make(2, 1, 8);
    offers.claim(2);
    expect(offers.takeBack(2, 1)).toBe(true);
    offers.make(2, 2, 8);
    offers.takeBack(0, 1);
    offers.claim(2);
    expect(offers.takeBack(2, 2)).toBe(false);
  });

  it('is older also where the count of calls has begun anew', () => {
    const offers = Offers.of(2);
    offers.make(0, 1, 2 ** 31 - 1);
    offers.make(1, 1, 2 ** 31);
    offers.claim(1);
    expect(offers.takeBack(1, 1)).toBe(true);
    offers.claim(0);
    expect(offers.takeBack(0, 1)).toBe(false);
  });

  it('is not for a thread without a place', () => {
    const offers = Offers.of(1);
    offers.make(0, 1, 1);
    offers.claim(NO_PLACE);
    expect(offers.takeBack(0, 1)).toBe(true);
  });
});
