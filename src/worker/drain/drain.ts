import type { Server } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { DrainReport } from '../../contract/ipc/index.js';
import { MAX_TIMER_MS, type ResolvedClusterOptions } from '../../contract/options/index.js';
import { pollOnce } from '../../contract/process/accept-queue.js';
import type { ClosableApp } from './app-close.js';
import type { LocalProcess } from '../link/local-process.js';
import type { Microservices } from '../microservices/microservices.js';
import type { QueueWorkers } from './queue-workers.js';

/** The actions of a process at the steps of its drain. */
export interface DrainSteps {
  /**
   * Closes the listening sockets, and nothing else; at once where the signal says so. Resolves with
   * how many connections were reset by that which nobody had accepted.
   *
   * @param rpc listening sockets of microservices.
   */
  stopAccepting(atOnce: AbortSignal, rpc: readonly Server[]): Promise<number>;
  /** All requests are over, and the app is still whole. */
  beforeClose?(): Promise<void>;
  readonly microservices?: Pick<Microservices, 'stopConsuming' | 'closeIdle' | 'busy' | 'running'>;
  readonly queues?: Pick<QueueWorkers, 'pause' | 'busy'>;
  /** Resolves when the lame duck must end now. */
  readonly cutShort?: Promise<void>;
  /** Why all this is, for the app's shutdown hooks. */
  signal?(): string | undefined;
}

/** How often connections are looked at for having become idle. */
const SWEEP_MS = 50;

/**
 * Takes a process out of service. The order is the point: readiness is off
 * before this begins; Nest's shutdown hooks run last, because they may close
 * what requests in flight need.
 *
 * @param force resolves when waiting must end now.
 */
export async function drain(
  app: ClosableApp,
  {
    tracker,
    hasTasksFrom,
    leaveClients,
  }: Pick<LocalProcess, 'tracker' | 'hasTasksFrom'> & Partial<Pick<LocalProcess, 'leaveClients'>>,
  steps: DrainSteps,
  shutdown: ResolvedClusterOptions['shutdown'],
  force: Promise<void>,
): Promise<DrainReport> {
  const startedAt = performance.now();
  const forced = force.then(() => 'forced' as const);
  const lameDuck = delay(shutdown.lameDuckMs, undefined, { ref: true });
  await Promise.race([lameDuck, forced, ...(steps.cutShort ? [steps.cutShort] : [])]);

  const { microservices, queues } = steps;
  queues?.pause();
  const rpc = microservices?.stopConsuming() ?? [];
  tracker.closeAfterResponse();
  const stoppedAt = performance.now();
  let leaving = leaveClients !== undefined;
  void leaveClients?.(shutdown.drainTimeoutMs / 2).finally(() => (leaving = false));
  const overdue = new AbortController();
  let accepting = true;
  const left = steps.stopAccepting(overdue.signal, rpc).finally(() => {
    accepting = false;
    tracker.postponeIdle();
  });
  const deadline = stoppedAt + shutdown.drainTimeoutMs;
  // Computations that the app goes on with by itself have no end.
  const busy = () =>
    hasTasksFrom(stoppedAt) || // first: those who are asked learn by it that the process drains
    accepting ||
    leaving ||
    tracker.openConnections > 0 ||
    microservices?.busy === true ||
    queues?.busy === true;
  for (let state; busy() && state !== 'forced' && performance.now() < deadline;) {
    if (accepting) tracker.postponeIdle();
    const patient = performance.now() < (stoppedAt + deadline) / 2;
    tracker.closeIdle(patient);
    microservices?.closeIdle(patient);
    // A request may have come while the event loop was blocked: it is read before it is missed.
    const looked = delay(SWEEP_MS).then(pollOnce);
    const closed = accepting ? [left.then(() => undefined)] : [];
    state = await Promise.race([looked, forced, ...closed]);
  }
  overdue.abort();
  const unacceptedConnections = await left;
  const cut = tracker.destroyAll();
  const abortedRequests = cut.abortedRequests + (microservices?.running ?? 0);
  await steps.beforeClose?.();
  const hooksDeadline = deadline + shutdown.killTimeoutMs;
  const hookError = await closeApp(
    app,
    steps.signal?.(),
    Math.max(hooksDeadline - performance.now(), shutdown.killTimeoutMs),
  );
  return {
    durationMs: performance.now() - startedAt,
    unacceptedConnections,
    ...cut,
    abortedRequests,
    hookError,
  };
}

/** Runs Nest's shutdown hooks, and says what went wrong with them. */
async function closeApp(
  app: ClosableApp,
  signal: string | undefined,
  timeoutMs: number,
): Promise<string | null> {
  const abort = new AbortController();
  try {
    return await Promise.race([
      app.close(signal).then(() => null),
      delay(
        Math.min(timeoutMs, MAX_TIMER_MS),
        `app.close() did not end within ${Math.round(timeoutMs)} ms`,
        {
          signal: abort.signal,
        },
      ),
    ]);
  } catch (error) {
    return `a shutdown hook failed: ${error instanceof Error ? error.message : String(error)}`;
  } finally {
    abort.abort();
  }
}
