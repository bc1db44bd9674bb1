import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Paced } from '../../../../src/offload/admission/paced.js';

const BATCH = 32;

beforeEach(() => vi.useFakeTimers({ toFake: ['setImmediate'] }));
afterEach(() => vi.useRealTimers());

function start() {
  const handled: number[] = [];
  const paced = new Paced<number>((item) => handled.push(item));
  return { handled, paced };
}

describe('what is paced', () => {
  it('is handled in a later turn of the event loop', () => {
    const { handled, paced } = start();
    paced.push(1);
    expect(handled).toEqual([]);
    vi.runAllTimers();
    expect(handled).toEqual([1]);
  });

  it('is handled in the order in which it came, some in each turn', () => {
    const { handled, paced } = start();
    const items = Array.from({ length: 2 * BATCH + 1 }, (_, i) => i);
    for (const item of items) paced.push(item);
    const after: number[] = [];
    while (vi.getTimerCount() > 0) {
      expect(vi.getTimerCount()).toBe(1);
      vi.runOnlyPendingTimers();
      after.push(handled.length);
    }
    expect(after).toEqual([BATCH, 2 * BATCH, 2 * BATCH + 1]);
    expect(handled).toEqual(items);
  });

  it('waits for nothing once it is handled, and goes on with what comes later', () => {
    const { handled, paced } = start();
    for (let i = 0; i < BATCH; i += 1) paced.push(i);
    vi.runAllTimers();
    expect([handled.length, vi.getTimerCount()]).toEqual([BATCH, 0]);
    paced.push(99);
    vi.runAllTimers();
    expect(handled).toHaveLength(BATCH + 1);
  });

  it('may bring more of it', () => {
    const handled: number[] = [];
    const paced = new Paced<number>((item) => {
      handled.push(item);
      if (item < 100) paced.push(item + 1);
    });
    paced.push(1);
    vi.runAllTimers();
    expect(handled).toEqual(Array.from({ length: 100 }, (_, i) => i + 1));
  });
});
