import { describe, expect, it } from 'vitest';
import { RetryAdvice } from '../../../../src/offload/admission/retry-advice.js';

function after(...runsMs: number[]): RetryAdvice {
  const advice = new RetryAdvice();
  for (const ms of runsMs) advice.ran(ms);
  return advice;
}

describe('when it is worth coming back', () => {
  it('is a second where nothing is known', () => {
    expect(after().seconds(10_000, 4)).toBe(1);
    expect(after().seconds(0, 0)).toBe(1);
  });

  it.each([
    [0, 1, 1],
    [1, 1, 2],
    [3, 1, 6],
    [3, 2, 3],
    [4, 3, 3],
    [100, 100, 2],
  ])('is what %i calls of 2 s take on %i threads: %i s', (waiting, threads, seconds) => {
    expect(after(2_000).seconds(waiting, threads)).toBe(seconds);
  });

  it('is never less than a second, in whole ones, rounded up', () => {
    expect(after(1).seconds(1, 1)).toBe(1);
    expect(after(1_001).seconds(1, 1)).toBe(2);
  });

  it('is a minute at most: more would be a guess', () => {
    expect(after(30_000).seconds(10_000, 1)).toBe(60);
  });

  it('is that of one thread where there is none', () => {
    expect(after(2_000).seconds(3, 0)).toBe(6);
  });

  it('follows how long calls run now, and forgets what was', () => {
    const advice = after(100);
    for (let i = 0; i < 60; i += 1) advice.ran(10_000);
    expect(advice.seconds(1, 1)).toBe(10);
    const brief = after(10_000);
    for (let i = 0; i < 100; i += 1) brief.ran(10);
    expect(brief.seconds(10, 1)).toBe(1);
  });

  it('is not thrown far by one call that was long', () => {
    const advice = after(...Array.from({ length: 50 }, () => 1_000), 11_000);
    expect(advice.seconds(1, 1)).toBe(2);
  });
});
