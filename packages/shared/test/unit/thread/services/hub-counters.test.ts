import { ThrottlerStorageService } from '@nestjs/throttler';
import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Counters } from '../../../../src/thread/services/counters.js';

afterEach(() => vi.useRealTimers());

const hit = fc.record({
  key: fc.constantFrom('k', 'l'),
  ttl: fc.integer({ min: 1, max: 4_000 }),
  limit: fc.nat(5),
  block: fc.constantFrom(0, 0, 500, 1_000, 6_000),
  throttler: fc.constantFrom('short', 'long'),
});
const step = fc.record({ afterMs: fc.nat(2_500), hit, sweeps: fc.boolean() });

describe('the counters of the hub', () => {
  it('count as the storage of @nestjs/throttler does, whatever comes', async () => {
    vi.useFakeTimers({ toFake: ['Date', 'setInterval', 'clearInterval'] });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40, size: 'max' }), async (steps) => {
        const oracle = new ThrottlerStorageService();
        const counters = new Counters();
        for (const { afterMs, hit, sweeps } of steps) {
          vi.setSystemTime(Date.now() + afterMs);
          if (sweeps) {
            counters.sweep(Date.now());
            oracle['evictIdleRecords']();
          }
          const { key, ttl, limit, block, throttler } = hit;
          const expected = await oracle
            .increment(key, ttl, limit, block, throttler)
            .catch(() => undefined);
          // It fails itself where a second throttler shares a key, as no guard does.
          if (expected === undefined || Number.isNaN(expected.totalHits)) return;
          expect(counters.count(hit, Date.now())).toEqual(expected);
        }
        oracle.onApplicationShutdown();
      }),
      { numRuns: 500 },
    );
  });

  it('forget clients that have not come for the longest time beyond their number', () => {
    const counters = new Counters(2);
    const count = (key: string) =>
      counters.count({ key, ttl: 1_000, limit: 5, block: 1_000, throttler: 'default' }, 0)
        .totalHits;
    expect([count('a'), count('b'), count('a'), count('c'), count('a')]).toEqual([1, 1, 2, 1, 3]);
    expect(count('b')).toBe(1);
    expect(counters.size).toBe(2);
  });

  it('forget clients beyond the number of hits of all, and those that nothing counts of', () => {
    const counters = new Counters(100, 10);
    const count = (key: string, now = 0) =>
      counters.count({ key, ttl: 1_000, limit: 50, block: 0, throttler: 'default' }, now).totalHits;
    for (let n = 0; n < 6; n += 1) count('a');
    for (let n = 0; n < 4; n += 1) count('b');
    expect(count('b')).toBe(5);
    expect(counters.size).toBe(1);
    counters.sweep(1_000);
    expect(counters.size).toBe(0);
  });
});
