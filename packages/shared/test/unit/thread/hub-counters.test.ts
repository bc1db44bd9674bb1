import { ThrottlerStorageService } from '@nestjs/throttler';
import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Counters } from '../../../src/thread/counters.js';

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
    vi.useFakeTimers({ now: 0, toFake: ['Date', 'performance', 'setInterval', 'clearInterval'] });
    vi.advanceTimersByTime(1); // lru-cache takes 0 for no time
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40, size: 'max' }), async (steps) => {
        const oracle = new ThrottlerStorageService();
        const counters = new Counters();
        for (const { afterMs, hit, sweeps } of steps) {
          vi.advanceTimersByTime(afterMs);
          if (sweeps) {
            counters.sweep();
            oracle['evictIdleRecords']();
          }
          const { key, ttl, limit, block, throttler } = hit;
          const expected = await oracle
            .increment(key, ttl, limit, block, throttler)
            .catch(() => undefined);
          // It fails itself where a second throttler shares a key, as no guard does.
          if (expected === undefined || Number.isNaN(expected.totalHits)) return;
          expect(counters.count(hit, Math.floor(performance.now()))).toEqual(expected);
        }
        oracle.onApplicationShutdown();
      }),
      { numRuns: 500 },
    );
  });
});
