import { describe, expect, it, vi } from 'vitest';
import type { Timer } from '../../../src/decide/cluster-state.js';
import { Timers } from '../../../src/primary/timers.js';
import { freezable } from '../support/frozen-clock.js';

const WORKER: Timer = { type: 'stop-overdue', worker: 1 };
const OTHER: Timer = { type: 'stop-overdue', worker: 2 };
const SLOT: Timer = { type: 'start-due', slot: 1 };

const clock = freezable();

function start() {
  const due = vi.fn<(timer: Timer) => void>();
  return { due, timers: new Timers(due) };
}

describe('a timer of the core', () => {
  it.each([WORKER, SLOT])('replaces the one before, and no other: %j', (timer) => {
    const { due, timers } = start();
    timers.arm(OTHER, 1_000);
    timers.arm(timer, 1_000);
    timers.arm(timer, 2_000);
    vi.advanceTimersByTime(1_000);
    expect(due.mock.calls).toEqual([[OTHER]]);
    vi.advanceTimersByTime(1_000);
    expect(due.mock.calls).toEqual([[OTHER], [timer]]);
  });

  it('can be armed again when it is due', () => {
    const { due, timers } = start();
    due.mockImplementationOnce((timer) => timers.arm(timer, 1_000));
    timers.arm(WORKER, 1_000);
    vi.advanceTimersByTime(2_000);
    expect(due).toHaveBeenCalledTimes(2);
  });

  it('is not due once it is disarmed, or the cluster has ended', () => {
    const { due, timers } = start();
    for (const timer of [WORKER, OTHER, SLOT]) timers.arm(timer, 1_000);
    timers.disarm(WORKER);
    vi.advanceTimersByTime(500);
    timers.stop();
    vi.advanceTimersByTime(60_000);
    expect([due.mock.calls.length, vi.getTimerCount()]).toEqual([0, 0]);
  });
});

describe('the timer of a worker', () => {
  /** The primary is stopped for `frozenMs` when `after` ms of the timer have passed. */
  function stoppedFor(frozenMs: number, after: number, ms = 3_000) {
    const { due, timers } = start();
    timers.arm(WORKER, ms);
    vi.advanceTimersByTime(after);
    clock.frozenMs = frozenMs;
    return due;
  }

  it.each([1, 249, 250, 251, 3_000, 10_001])('is due after %d ms, and once', (ms) => {
    const { due, timers } = start();
    timers.arm(WORKER, ms);
    vi.advanceTimersByTime(ms - 1);
    expect(due).not.toHaveBeenCalled();
    vi.advanceTimersByTime(60_000);
    expect(due).toHaveBeenCalledOnce();
  });

  it.each([
    ['does not count the time for which the primary was stopped', 6_000, 1_000, 2_000],
    ['counts a delay of up to a slice', 250, 0, 2_750],
    ['does not count a longer delay', 251, 0, 3_000],
    ['leaves a slice to read what came meanwhile', 6_000, 2_990, 260],
  ])('%s', (_, frozenMs, after, leftMs) => {
    const due = stoppedFor(frozenMs, after);
    vi.advanceTimersByTime(leftMs - 1);
    expect(due).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(due).toHaveBeenCalledOnce();
  });

  it('waits longer after a stop than the timer of a slot', () => {
    const { due, timers } = start();
    timers.arm(WORKER, 240);
    timers.arm(SLOT, 240);
    clock.frozenMs = 60_000;
    vi.advanceTimersByTime(240);
    expect(due.mock.calls).toEqual([[SLOT]]);
    vi.advanceTimersByTime(250);
    expect(due.mock.calls).toEqual([[SLOT], [WORKER]]);
  });

  it('is never due if the time is infinite', () => {
    const due = stoppedFor(6_000, 1, Infinity);
    vi.advanceTimersByTime(60_000);
    expect(due).not.toHaveBeenCalled();
  });
});
