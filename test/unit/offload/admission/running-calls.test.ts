import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Call } from '../../../../src/offload/admission/call.js';
import { RetryAdvice } from '../../../../src/offload/admission/retry-advice.js';
import { RunningCalls } from '../../../../src/offload/admission/running-calls.js';
import { UNOBSERVED } from '../../../../src/offload/task/task.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('says for which share of the time its threads were busy, by calls that ended and that run', () => {
  const running = new RunningCalls({ startMs: 0 }, UNOBSERVED, new RetryAdvice(), () => {});
  const calls = Array.from({ length: 2 }, () => ({ task: { timeoutMs: 60_000 } }) as Call);
  running.begin(calls[0]!);
  vi.advanceTimersByTime(500);
  running.end(calls[0]!);
  vi.advanceTimersByTime(500);
  expect(running.utilization(2)).toBeCloseTo(0.25);
  running.begin(calls[1]!);
  vi.advanceTimersByTime(1_000);
  expect([running.utilization(2), running.utilization(2)]).toEqual([0.5, 0]);
  vi.advanceTimersByTime(1_000);
  expect(running.utilization(2)).toBeCloseTo(0.5);
  expect(running.utilization(1)).toBe(0);
});
