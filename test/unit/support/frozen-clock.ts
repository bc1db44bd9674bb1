import { beforeEach, vi } from 'vitest';

/** For each test of a file or block: fake timers, and a process that can stand still while the clock goes on. */
export function freezable(): { frozenMs: number } {
  const freeze = { frozenMs: 0 };
  beforeEach(() => {
    vi.useFakeTimers();
    freeze.frozenMs = 0;
    const now = performance.now.bind(performance);
    vi.spyOn(performance, 'now').mockImplementation(() => now() + freeze.frozenMs);
  });
  return freeze;
}
