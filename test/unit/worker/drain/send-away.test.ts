import { describe, expect, it, vi } from 'vitest';
import { sendAway } from '../../../../src/worker/drain/send-away.js';

describe('clients that are sent away', () => {
  it('are told once each, at a pace, until they are gone', async () => {
    vi.useFakeTimers();
    try {
      const present = new Set(Array.from({ length: 50 }, (_, index) => index));
      const told: number[] = [];
      const over = sendAway(
        () => [...present],
        (one) => void told.push(one),
        1_000,
      );
      await vi.advanceTimersByTimeAsync(50);
      expect(told.length).toBeGreaterThan(20);
      expect(told.length).toBeLessThan(40);
      await vi.advanceTimersByTimeAsync(200);
      expect(told).toEqual([...present]);
      present.clear();
      await vi.advanceTimersByTimeAsync(50);
      await over;
    } finally {
      vi.useRealTimers();
    }
  });

  it('are told within the time, however many they are', async () => {
    vi.useFakeTimers();
    try {
      const present = new Set(Array.from({ length: 10_000 }, (_, index) => index));
      void sendAway(
        () => [...present],
        (one) => present.delete(one),
        1_000,
      );
      await vi.advanceTimersByTimeAsync(500);
      expect(present.size).toBeGreaterThan(3_000);
      await vi.advanceTimersByTimeAsync(600);
      expect(present.size).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });
});
