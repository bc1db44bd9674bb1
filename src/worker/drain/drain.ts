import { setTimeout as delay } from 'node:timers/promises';
import type { DrainReport } from '../../contract/ipc/index.js';
import { MAX_TIMER_MS, type ResolvedClusterOptions } from '../../contract/options/index.js';
import { pollOnce } from '../../contract/process/accept-queue.js';
import type { LocalLink } from '../link/local-link.js';
import type { WorkerApp } from '../life/worker-app.interface.js';
import type { WorkerSockets } from '../listen/worker-sockets.js';
import type { Microservices } from '../microservices/microservices.js';
import type { QueueWorkers } from './queue-workers.js';

/** Everything that a process leaves in its drain. */
export interface DrainedParts {
  readonly link: Pick<LocalLink, 'tracker' | 'hasTasksFrom' | 'sendClientsAway'>;
  readonly sockets: Pick<WorkerSockets, 'leave'>;
  readonly microservices: Microservices;
  readonly queues: QueueWorkers;
  /** Resolves when the lame duck must end now. */
  readonly cutShort: Promise<void>;
  /** Resolves when all waiting must end now. */
  readonly forced: Promise<void>;
  /** All requests are over, and the app is still whole. */
  beforeClose(): Promise<void>;
  /** Runs the app's shutdown hooks. */
  readonly close: WorkerApp['close'];
  /** Why the process leaves, for the app's shutdown hooks. */
  signal(): string | undefined;
}

/** How often connections are looked at for having become idle. */
const SWEEP_MS = 50;

/**
 * Takes a process out of service. The order is the point: readiness is off before this begins, and
 * Nest's shutdown hooks run last, because they may close what requests in flight need.
 */
export async function drain(
  parts: DrainedParts,
  { lameDuckMs, drainTimeoutMs, killTimeoutMs }: ResolvedClusterOptions['shutdown'],
): Promise<DrainReport> {
  const { link, microservices, queues } = parts;
  const startedAt = performance.now();
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
  const unacceptedConnections = await accepted;
  const cut = link.tracker.destroyAll();
  const abortedRequests = cut.abortedRequests + microservices.running;

  await parts.beforeClose();
  const left = deadline + killTimeoutMs - performance.now();
  const hookError = await closeApp(parts, Math.max(left, killTimeoutMs));
  const durationMs = performance.now() - startedAt;
  return { durationMs, unacceptedConnections, ...cut, abortedRequests, hookError };
}

/** Closes what becomes idle until nothing is left, or the time is up. */
async function untilIdle(
  { link, microservices, queues, forced }: DrainedParts,
  times: {
    readonly stoppedAt: number;
    readonly deadline: number;
    /** The sockets are closed. */
    readonly accepted: Promise<number>;
    /** Clients that are sent away are gone. */
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
  // Computations that the app goes on with by itself have no end.
  const busy = () =>
    link.hasTasksFrom(stoppedAt) || // first: the question says that the process drains
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
    // A request may have come while the event loop was blocked: it is read before it is missed.
    const looked = delay(SWEEP_MS).then(pollOnce);
    await Promise.race([looked, forced, ...(accepting ? [closed] : [])]);
  }
}

/** Runs Nest's shutdown hooks. @returns what went wrong with them. */
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
