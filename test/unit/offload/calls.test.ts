import { beforeEach, expect, it, vi } from 'vitest';
import { Calls } from '../../../src/offload/run/calls.js';
import { TASK } from '../support/observed-task.js';

beforeEach(() => void vi.useFakeTimers());

it('counts calls, and measures how long each has waited and run', () => {
  const metrics = { began: vi.fn(), ran: vi.fn(), ended: vi.fn() };
  const calls = new Calls(metrics);
  const [first, second] = [calls.add(TASK), calls.add(TASK)];
  vi.advanceTimersByTime(20);
  calls.begin(first);
  expect([calls.size, calls.running]).toEqual([2, 1]);
  vi.advanceTimersByTime(30);
  calls.remove(first, 'completed');
  calls.remove(second, 'queue_timeout');
  expect([calls.size, calls.running]).toEqual([0, 0]);
  expect(metrics.began.mock.calls).toEqual([[TASK, 20]]);
  expect(metrics.ran.mock.calls).toEqual([[TASK, 30]]);
  expect(metrics.ended.mock.calls).toEqual([
    [TASK, 'completed'],
    [TASK, 'queue_timeout'],
  ]);
});

it('knows whether a call was made before a time', () => {
  const calls = new Calls();
  const call = calls.add(TASK);
  const at = performance.now();
  expect([calls.hasCallBefore(at), calls.hasCallBefore(at + 1)]).toEqual([false, true]);
  calls.remove(call, 'completed');
  expect(calls.hasCallBefore(Infinity)).toBe(false);
});

it('ends a call once, and keeps the first reason', () => {
  const call = new Calls().add(TASK);
  call.stop = vi.fn();
  call.end('timeout', 'a');
  call.end('aborted', 'b');
  expect(call.ended).toEqual({ outcome: 'timeout', error: 'a' });
  expect(call.stop).toHaveBeenCalledOnce();
});

it('knows the share of the time in which threads were busy, from calls that ended and that run', () => {
  const calls = new Calls();
  const [first, second] = [calls.add(TASK), calls.add(TASK)];
  calls.begin(first);
  vi.advanceTimersByTime(500);
  calls.remove(first, 'completed');
  vi.advanceTimersByTime(500);
  expect(calls.utilization(2)).toBeCloseTo(0.25);
  calls.begin(second);
  vi.advanceTimersByTime(1_000);
  expect([calls.utilization(2), calls.utilization(2)]).toEqual([0.5, 0]);
});
