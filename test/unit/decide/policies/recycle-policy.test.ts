import { describe, expect, it } from 'vitest';
import { isRecyclingDue } from '../../../../src/decide/replace/upkeep.js';

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
