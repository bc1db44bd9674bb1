import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Timer } from '../../../src/decide/cluster-state.js';
import { Timers } from '../../../src/primary/timers.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const [ONE, TWO]: Timer[] = [1, 2].map((worker) => ({ type: 'stop-overdue', worker }));
const SLOT: Timer = { type: 'start-due', slot: 1 };
const CLUSTER: Timer = { type: 'lame-duck-over' };

function start() {
  const due = vi.fn<(timer: Timer) => void>();
  return { due, timers: new Timers(due) };
}

describe('a timer of the core', () => {
  it.each([ONE!, SLOT])('takes the place of the one before, and of no other: %j', (timer) => {
    const { due, timers } = start();
    timers.arm(TWO!, 1_000);
    timers.arm(timer, 1_000);
    timers.arm(timer, 2_000);
    vi.advanceTimersByTime(1_000);
    expect(due.mock.calls).toEqual([[TWO]]);
    vi.advanceTimersByTime(1_000);
    expect(due.mock.calls).toEqual([[TWO], [timer]]);
  });

  it('can be armed again by what it has caused', () => {
    const { due, timers } = start();
    due.mockImplementationOnce((timer) => timers.arm(timer, 1_000));
    timers.arm(ONE!, 1_000);
    vi.advanceTimersByTime(2_000);
    expect(due).toHaveBeenCalledTimes(2);
  });

  it('gives a worker the time in which the primary stood still; a slot waits for that no longer', () => {
    let frozenMs = 0;
    const now = performance.now.bind(performance);
    vi.spyOn(performance, 'now').mockImplementation(() => now() + frozenMs);
    const { due, timers } = start();
    timers.arm(ONE!, 240);
    timers.arm(SLOT, 240);
    frozenMs = 60_000;
    vi.advanceTimersByTime(240);
    expect(due.mock.calls).toEqual([[SLOT]]);
    vi.advanceTimersByTime(250);
    expect(due.mock.calls).toEqual([[SLOT], [ONE]]);
  });

  it('outlives no cluster', () => {
    const { due, timers } = start();
    for (const timer of [ONE!, TWO!, SLOT, CLUSTER]) timers.arm(timer, 1_000);
    timers.stop();
    vi.advanceTimersByTime(2_000);
    expect([due.mock.calls.length, vi.getTimerCount()]).toEqual([0, 0]);
  });
});
