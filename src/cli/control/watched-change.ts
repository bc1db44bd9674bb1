import { setTimeout as delay } from 'node:timers/promises';
import type { ControlClient, Told } from './control-client.js';
import { printLine } from './output.js';

/** A primary sends a sample a second. */
const SILENT_MS = 2_500;

/** What happened before the answer comes by another connection. */
const LAST_EVENTS_MS = 50;

/**
 * Asks for a change, and shows what comes of it meanwhile.
 *
 * @param progress what to say of an event; `undefined` shows nothing.
 * @throws ClusterUnreachableError, ClusterRefusedError
 */
export async function watchedChange<T>(
  client: ControlClient,
  path: string,
  body: object,
  progress: ((told: Told & { type: 'log' }) => string | undefined) | undefined,
): Promise<T> {
  const end = new AbortController();
  // Also tells whether the primary answers at all, before it is waited for without end.
  const events = await client.events(end.signal);
  const watching = follow(events, progress);
  try {
    const answer = await client.post<T>(path, body);
    if (progress !== undefined) await delay(LAST_EVENTS_MS);
    return answer;
  } finally {
    end.abort();
    await watching;
  }
}

async function follow(
  events: AsyncIterable<Told>,
  progress: ((told: Told & { type: 'log' }) => string | undefined) | undefined,
): Promise<void> {
  const silence = setTimeout(() => {
    process.stderr.write('the primary does not answer: it is blocked or stopped; waiting for it\n');
  }, SILENT_MS);
  try {
    for await (const told of events) {
      silence.refresh();
      if (told.type !== 'log') continue;
      const line = progress?.(told);
      if (line !== undefined) printLine(line);
    }
  } catch {
    // It was ended, or the cluster has: the answer tells.
  } finally {
    clearTimeout(silence);
  }
}
