import { setTimeout as delay } from 'node:timers/promises';
import { PATIENCE_MS } from './patience.js';

const POLL_MS = 25;

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
  for (;;) {
    const value = await probe();
    if (holds(value)) return value;
    if (performance.now() > deadline) {
      throw new Error(`not within ${timeoutMs} ms: ${what}; last seen: ${JSON.stringify(value)}`);
    }
    await delay(POLL_MS);
  }
}
