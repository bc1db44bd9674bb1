import { describe, expect, it, vi } from 'vitest';
import { Deadline, leftAfterSlice } from '../../../src/supervisor/deadline.js';
import { freezable } from '../support/frozen-clock.js';

describe('what is left of a wait', () => {
  it('is less by the time that passed, where the primary was awake', () => {
    expect(leftAfterSlice(3_000, 250, 250)).toBe(2_750);
    expect(leftAfterSlice(3_000, 250, 400)).toBe(2_600);
    expect(leftAfterSlice(100, 100, 350)).toBe(-250);
  });

  it('is less by what was planned, where the primary stood still', () => {
    expect(leftAfterSlice(3_000, 250, 501)).toBe(2_750);
    expect(leftAfterSlice(3_000, 250, 3_600_000)).toBe(2_750);
  });

  it('is time enough to read what came meanwhile', () => {
    expect(leftAfterSlice(250, 250, 6_000)).toBe(250);
    expect(leftAfterSlice(10, 10, 6_000)).toBe(250);
    expect(leftAfterSlice(0, 0, 6_000)).toBe(250);
  });

  it('never ends for a wait without an end', () => {
    expect(leftAfterSlice(Infinity, 250, 250)).toBe(Infinity);
    expect(leftAfterSlice(Infinity, 250, 6_000)).toBe(Infinity);
  });
});

describe('Deadline', () => {
  const clock = freezable();

  function start(ms: number) {
    const action = vi.fn();
    return { action, deadline: new Deadline(ms, action) };
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

  it('passes at once where there is nothing to wait for', () => {
    const { action } = start(0);
    vi.advanceTimersByTime(1);
    expect(action).toHaveBeenCalledOnce();
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
    const { action, deadline } = start(3_000);
    vi.advanceTimersByTime(2_000);
    deadline.cancel();
    vi.advanceTimersByTime(60_000);
    expect(action).not.toHaveBeenCalled();
  });
});
