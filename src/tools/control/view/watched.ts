import { setTimeout as delay } from 'node:timers/promises';
import { ClusterRefusedError } from '../../../contract/errors/index.js';
import type { ControlClient, Told } from '../control-client.js';
import { printLine } from './output.js';
import { noticingSilence, SILENCE } from './silence.js';

/** A log event that comes while a command waits. */
export type Logged = Told & { readonly type: 'log' };

/** Returns the line to show for an event. */
export type Progress = (told: Logged) => string;

/** How long to wait for the last events after the answer, in ms, because events come over another connection. */
const LAST_EVENTS_MS = 50;

/**
 * Makes a request that may take long. Shows the events until the answer comes, and reports a
 * primary that stops answering. If the primary does not answer from the start, `ask` is not called.
 *
 * @param progress makes the lines to show. `undefined` shows nothing.
 * @throws ClusterUnreachableError, and any error of `ask`.
 */
export async function watched<T>(
  client: ControlClient,
  progress: Progress | undefined,
  ask: () => Promise<T>,
): Promise<T> {
  const end = new AbortController();
  const events = await client.events(end.signal).catch(unlessRefused);
  const watching = events && follow(events, progress);
  try {
    const answer = await ask();
    if (progress !== undefined) await delay(LAST_EVENTS_MS);
    return answer;
  } finally {
    end.abort();
    await watching;
  }
}

/** If the primary refuses another event stream, the request is made without events. */
function unlessRefused(error: unknown): undefined {
  if (!(error instanceof ClusterRefusedError)) throw error;
}

async function follow(events: AsyncIterable<Told>, progress: Progress | undefined): Promise<void> {
  const warn = (): void => void process.stderr.write(`${SILENCE}; waiting for it\n`);
  try {
    for await (const told of noticingSilence(events, warn)) {
      // A change of the leader is not a step of the requested change.
      if (told.type !== 'log' || told.data.name === 'leader') continue;
      if (progress !== undefined) printLine(progress(told));
    }
  } catch {
    // `watched` has closed the stream, or the cluster has ended. The request reports the outcome.
  }
}
