import { describe, expect, it } from 'vitest';
import { giveBackForMs, MAX_STARTS } from '../../../../src/integrations/bullmq/give-back.policy.js';

const delays = (count: number, isCall: boolean) =>
  Array.from({ length: count }, (_, i) => giveBackForMs(i + 1, isCall)!);

describe('a consumer that cannot run a job', () => {
  it('gives it to others, later each time, for about an hour', () => {
    expect(delays(3, false)).toEqual([200, 250, 313]);
    const all = delays(MAX_STARTS, false);
    expect(Math.max(...all)).toBe(30_000);
    const minutes = all.reduce((sum, each) => sum + each) / 60_000;
    expect(minutes).toBeGreaterThan(55);
    expect(minutes).toBeLessThan(65);
    expect(giveBackForMs(MAX_STARTS + 1, false)).toBeUndefined();
  });

  it('soon finds the one of four consumers that can', () => {
    // Nine in ten jobs are taken by it within eight more tries.
    expect(delays(8, false).reduce((sum, each) => sum + each)).toBeLessThan(5_000);
  });

  it('gives a call to others often enough for its 30 s, and until its deadline', () => {
    const all = delays(32, true);
    expect(all.reduce((sum, each) => sum + each)).toBeLessThan(31_000);
    expect(giveBackForMs(10_000, true)).toBe(1_000);
  });
});
