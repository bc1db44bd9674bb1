import { describe, expect, it } from 'vitest';
import { isRecyclingDue } from '../../../../../src/supervisor/decide/policies/recycle.policy.js';

const NEVER = { maxRequests: Infinity, maxAgeMs: Infinity };
const NOTHING = { ageMs: 0, requests: 0 };

describe.each([
  [0, 900],
  [0.25, 950],
  [0.5, 1_000],
  [0.75, 1_050],
  [1, 1_100],
])('a worker with the lot %d and a limit of 1000', (lot, limit) => {
  const byRequests = { ...NEVER, maxRequests: 1_000 };
  const byAge = { ...NEVER, maxAgeMs: 1_000 };

  it(`has served long enough at ${limit} requests, not before`, () => {
    const due = (requests: number) => isRecyclingDue({ ...NOTHING, requests }, byRequests, lot);
    expect([due(limit - 1), due(limit)]).toEqual([false, true]);
  });

  it(`has served long enough at ${limit} ms, not before`, () => {
    const due = (ageMs: number) => isRecyclingDue({ ...NOTHING, ageMs }, byAge, lot);
    expect([due(limit - 1), due(limit)]).toEqual([false, true]);
  });
});

describe('a worker has served long enough', () => {
  it('whichever of its limits it reaches first', () => {
    const both = { maxRequests: 100, maxAgeMs: 5_000 };
    expect(isRecyclingDue({ requests: 99, ageMs: 4_999 }, both, 0.5)).toBe(false);
    expect(isRecyclingDue({ requests: 100, ageMs: 0 }, both, 0.5)).toBe(true);
    expect(isRecyclingDue({ requests: 0, ageMs: 5_000 }, both, 0.5)).toBe(true);
  });

  it.each([0, 0.5, 1])('never where it has no limit (lot %d)', (lot) => {
    const ancient = { requests: Number.MAX_SAFE_INTEGER, ageMs: Number.MAX_SAFE_INTEGER };
    expect(isRecyclingDue(ancient, NEVER, lot)).toBe(false);
  });

  it.each([0, 0.5, 1])('not at its very start (lot %d)', (lot) => {
    const limits = { maxRequests: 1, maxAgeMs: 1_000 };
    expect(isRecyclingDue(NOTHING, limits, lot)).toBe(false);
  });
});
