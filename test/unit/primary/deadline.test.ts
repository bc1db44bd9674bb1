import { describe, expect, it, vi } from 'vitest';
import { afterRunning } from '../../../src/primary/timers.js';
import { freezable } from '../support/frozen-clock.js';

describe('a wait', () => {
  const clock = freezable();

  function start(ms: number) {
    const action = vi.fn();
    return { action, cancel: afterRunning(ms, action) };
  }

  it.each([1, 249, 250, 251, 3_000, 10_001])('passes after %d ms, not before, and once', (ms) => {
    const { action } = start(ms);
    vi.advanceTimersByTime(ms - 1);
    expect(action).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(action).toHaveBeenCalledOnce();
    vi.advanceTimersByTime(60_000);
    expect(action).toHaveBeenCalledOnce();
  });

  it.each([
    [0, 1],
    [Infinity, 0],
  ])('of %d ms passes %d times', (ms, times) => {
    const { action } = start(ms);
    vi.advanceTimersByTime(1);
    clock.frozenMs = 6_000;
    vi.advanceTimersByTime(60_000);
    expect(action).toHaveBeenCalledTimes(times);
  });

  it('does not count the time in which the primary stood still', () => {
    const { action } = start(3_000);
    vi.advanceTimersByTime(1_000);
    clock.frozenMs = 6_000;
    vi.advanceTimersByTime(1_999);
    expect(action).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(action).toHaveBeenCalledOnce();
  });

  it.each([
    [250, 2_750],
    [251, 3_000],
  ])('counts a delay of up to a slice: with %d ms it passes after %d ms', (frozenMs, passesMs) => {
    const { action } = start(3_000);
    clock.frozenMs = frozenMs;
    vi.advanceTimersByTime(passesMs - 1);
    expect(action).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(action).toHaveBeenCalledOnce();
  });

  it('leaves time to read what came meanwhile, where it was all but over', () => {
    const { action } = start(3_000);
    vi.advanceTimersByTime(2_990);
    clock.frozenMs = 6_000;
    vi.advanceTimersByTime(259);
    expect(action).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(action).toHaveBeenCalledOnce();
  });

  it('does not pass once it is cancelled', () => {
    const { action, cancel } = start(3_000);
    vi.advanceTimersByTime(2_000);
    cancel();
    vi.advanceTimersByTime(60_000);
    expect(action).not.toHaveBeenCalled();
  });
});
