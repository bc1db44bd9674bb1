import { setTimeout as delay } from 'node:timers/promises';
import type { DrainReport } from '../../contract/messages.js';
import type { ResolvedClusterOptions } from '../../contract/options/index.js';
import { MAX_TIMER_MS } from '../../contract/options/schema.js';
import { pollOnce } from '../../contract/process/accept-queue.js';
import type { ProcessLink } from '../link/process-link.js';
import type { WorkerApp } from '../life/worker-app.interface.js';
import type { WorkerSockets } from '../listen/worker-sockets.js';
import type { Microservices } from '../microservices/microservices.js';
import type { QueueWorkers } from './queue-workers.js';

export interface DrainedParts {
  readonly link: Pick<ProcessLink, 'tracker' | 'hasTasksFrom' | 'sendClientsAway'>;
  readonly sockets: Pick<WorkerSockets, 'leave'>;
  readonly microservices: Microservices;
  readonly queues: QueueWorkers;
  /** Resolves when the lame duck phase must end now. */
  readonly cutShort: Promise<void>;
  /** Resolves when all waiting must end now. */
  readonly forced: Promise<void>;
  /** Called when all requests have ended and no shutdown hook has run. */
  beforeClose(): Promise<void>;
  readonly close: WorkerApp['close'];
  signal(): string | undefined;
}

/** The interval at which the drain looks for idle connections. */
const SWEEP_MS = 50;

/**
 * Drains a process: ends its traffic, and then closes the app. The caller must turn readiness off
 * before. Nest's shutdown hooks run last, because they may close resources that requests in flight
 * need.
 */
export async function drain(
  parts: DrainedParts,
  { lameDuckMs, drainTimeoutMs, killTimeoutMs }: ResolvedClusterOptions['shutdown'],
): Promise<DrainReport> {
  const { link, microservices, queues } = parts;
  await Promise.race([delay(lameDuckMs), parts.forced, parts.cutShort]);

  queues.pause();
  const rpc = microservices.stopConsuming();
  link.tracker.closeAfterResponse();
  const stoppedAt = performance.now();
  const deadline = stoppedAt + drainTimeoutMs;
  const away = link.sendClientsAway(drainTimeoutMs / 2);
  const overdue = new AbortController();
  const accepted = parts.sockets.leave(overdue.signal, rpc);
  await untilIdle(parts, { stoppedAt, deadline, accepted, away });
  overdue.abort();
  await accepted;
  // Reads from the connections that were accepted last, so that their clients are counted.
  if (link.tracker.openConnections > 0) await pollOnce();
  const cut = link.tracker.destroyAll();
  const abortedRequests = cut.abortedRequests + microservices.running;

  await parts.beforeClose();
  const left = deadline + killTimeoutMs - performance.now();
  const hookError = await closeApp(parts, Math.max(left, killTimeoutMs));
  return { ...cut, abortedRequests, hookError };
}

/** Closes connections as they become idle, until nothing is left or the deadline is reached. */
async function untilIdle(
  { link, microservices, queues, forced }: DrainedParts,
  times: {
    readonly stoppedAt: number;
    readonly deadline: number;
    /** Resolves when the listening sockets are closed. */
    readonly accepted: Promise<void>;
    /** Resolves when the clients that were asked to reconnect have left. */
    readonly away: Promise<void>;
  },
): Promise<void> {
  const { tracker } = link;
  const { stoppedAt, deadline } = times;
  let accepting = true;
  const closed = times.accepted.then(() => {
    accepting = false;
    tracker.postponeIdle();
  });
  let sending = true;
  void times.away.then(() => (sending = false));
  let isForced = false;
  void forced.then(() => (isForced = true));
  // Waits only for tasks from before the drain, because the app may start new tasks without end.
  const busy = () =>
    link.hasTasksFrom(stoppedAt) || // first, because the call also announces the drain
    accepting ||
    sending ||
    tracker.openConnections > 0 ||
    microservices.busy ||
    queues.busy;
  while (busy() && !isForced && performance.now() < deadline) {
    if (accepting) tracker.postponeIdle();
    const patient = performance.now() < (stoppedAt + deadline) / 2;
    tracker.closeIdle(patient);
    microservices.closeIdle(patient);
    // Polls once, so that requests that came while the event loop was blocked are read before the check.
    const looked = delay(SWEEP_MS).then(pollOnce);
    await Promise.race([looked, forced, ...(accepting ? [closed] : [])]);
  }
}

/** Runs Nest's shutdown hooks. @returns the error of a hook, or `null`. */
async function closeApp(
  { close, signal }: Pick<DrainedParts, 'close' | 'signal'>,
  timeoutMs: number,
): Promise<string | null> {
  const abort = new AbortController();
  const late = `app.close() did not end within ${Math.round(timeoutMs)} ms`;
  try {
    return await Promise.race([
      close(signal()).then(() => null),
      delay(Math.min(timeoutMs, MAX_TIMER_MS), late, { signal: abort.signal }),
    ]);
  } catch (error) {
    return `a shutdown hook failed: ${error instanceof Error ? error.message : String(error)}`;
  } finally {
    abort.abort();
  }
}
