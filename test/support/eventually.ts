import { setTimeout as delay } from 'node:timers/promises';
import { PATIENCE_MS } from './patience.js';

/** Polls grow rarer: each takes CPU time from what is waited for. */
const POLL_MS = { first: 25, growth: 5, longest: 100 };

/**
 * Asks `probe` again and again until what it gives satisfies `holds`; for what
 * announces itself by no event. At the deadline it fails with the last value.
 */
export async function eventually<T>(
  what: string,
  probe: () => Promise<T> | T,
  holds: (value: T) => boolean = Boolean,
  timeoutMs = PATIENCE_MS,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (
    let pauseMs = POLL_MS.first;
    ;
    pauseMs = Math.min(pauseMs + POLL_MS.growth, POLL_MS.longest)
  ) {
    const value = await probe();
    if (holds(value)) return value;
    if (performance.now() > deadline) {
      throw new Error(`not within ${timeoutMs} ms: ${what}; last seen: ${JSON.stringify(value)}`);
    }
    await delay(pauseMs);
  }
}
