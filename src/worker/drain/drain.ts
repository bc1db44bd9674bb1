import { setTimeout as delay } from 'node:timers/promises';
import type { DrainReport } from '../../contract/messages.js';
import type { ResolvedClusterOptions } from '../../contract/options/resolve.js';
import { MAX_TIMER_MS } from '../../contract/options/checks.js';
import { inTime } from '../../contract/process/in-time.js';
import { pollOnce } from '../../contract/process/accept-queue.js';
import type { ProcessLink, SentClients } from '../link/process-link.js';
import type { ServedApp } from '../boot/served-app.js';
import type { WorkerSockets } from '../listen/sockets.js';

/** The used part of the app that is drained. */
export type DrainedApp = Pick<
  ServedApp,
  'app' | 'close' | 'signal' | 'microservices' | 'lameDuck' | 'forced'
> & {
  readonly link: Pick<ProcessLink, 'tracker' | 'hasTasksFrom' | 'clients'>;
  readonly sockets: Pick<WorkerSockets, 'leave'>;
};

/** The interval at which the drain looks for idle connections. */
const SWEEP_MS = 50;

/**
 * Drains a process: ends its traffic, and then closes the app. The caller must turn readiness off
 * before. Nest's shutdown hooks run last, because they may close resources that requests in flight
 * need.
 *
 * @param beforeClose is called when all requests have ended and no shutdown hook has run.
 */
export async function drain(
  served: DrainedApp,
  { lameDuckMs, drainTimeoutMs, killTimeoutMs }: ResolvedClusterOptions['shutdown'],
  beforeClose: () => Promise<void>,
): Promise<DrainReport> {
  const { link, microservices, sockets, forced } = served;
  const { tracker } = link;
  await waitFor(lameDuckMs, served.lameDuck.signal);

  const paused = pauseQueues(served.app);
  const rpc = microservices.stop();
  tracker.closeAfterResponse();
  const stoppedAt = performance.now();
  const deadline = stoppedAt + drainTimeoutMs;
  let sending = true;
  const overdue = new AbortController();
  const sent = link.clients.map((clients) => sendAway(clients, drainTimeoutMs / 2));
  void Promise.allSettled([paused, ...sent]).then(() => (sending = false));
  void sendAway(tracker.endless, drainTimeoutMs / 2, overdue.signal);
  let accepting = true;
  const accepted = sockets.leave(overdue.signal, rpc).then(() => {
    accepting = false;
    tracker.postponeIdle();
  });
  // Waits only for tasks from before the drain, because the app may start new tasks without end.
  const busy = () =>
    link.hasTasksFrom(stoppedAt) || // first, because the call also announces the drain
    accepting ||
    sending ||
    tracker.openConnections > 0 ||
    microservices.busy;
  while (busy() && !forced.signal.aborted && performance.now() < deadline) {
    if (accepting) tracker.postponeIdle();
    const patient = performance.now() < (stoppedAt + deadline) / 2;
    tracker.closeIdle(patient);
    microservices.closeIdle(patient);
    // Polls once, so that requests that came while the event loop was blocked are read before the check.
    const looked = waitFor(SWEEP_MS, forced.signal).then(pollOnce);
    await (accepting ? Promise.race([looked, accepted]) : looked);
  }
  overdue.abort();
  await accepted;
  // Reads from the connections that were accepted last, so that their clients are counted.
  if (tracker.openConnections > 0) await pollOnce();
  const cut = tracker.destroyAll();
  const abortedRequests = cut.abortedRequests + microservices.running;

  await beforeClose();
  const left = deadline + killTimeoutMs - performance.now();
  const hookError = await closeApp(served, Math.max(left, killTimeoutMs));
  return { ...cut, abortedRequests, hookError };
}

/** Resolves after the time, or when `signal` is aborted. */
async function waitFor(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => {});
}

/** The CPU time that a reconnecting client costs another worker: about two handshakes. */
const CLIENT_COST_MS = 2;
const STEP_MS = 10;

/**
 * Makes clients reconnect to other workers: a few at a time so that these are not overloaded, and all
 * of them within `withinMs`. Resolves when all clients have left, and `over` is aborted.
 */
export async function sendAway(
  { present, leave }: SentClients,
  withinMs: number,
  over = AbortSignal.abort(),
): Promise<void> {
  const asked = new Set<unknown>();
  const until = performance.now() + withinMs;
  for (let all = present(); all.length > 0 || !over.aborted; all = present()) {
    const waiting = all.filter((each) => !asked.has(each));
    const steps = Math.max(1, (until - performance.now()) / STEP_MS);
    const now = Math.max(STEP_MS / CLIENT_COST_MS, Math.ceil(waiting.length / steps));
    for (const one of waiting.slice(0, now)) {
      asked.add(one);
      leave(one);
    }
    await delay(STEP_MS);
  }
}

/** Runs Nest's shutdown hooks. @returns the error of a hook, or `null`. */
async function closeApp(
  served: Pick<DrainedApp, 'close' | 'signal'>,
  timeoutMs: number,
): Promise<string | null> {
  const late = `app.close() did not end within ${Math.round(timeoutMs)} ms`;
  try {
    const closed = served.close(served.signal).then(() => null);
    return await inTime<string | null>(closed, Math.min(timeoutMs, MAX_TIMER_MS), () => late);
  } catch (error) {
    return `a shutdown hook failed: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** The used part of a BullMQ `Worker`. Declared here, because BullMQ is a dependency of the app. */
interface QueueWorker {
  /** Takes no more jobs. Resolves when the jobs that run are done. */
  pause(): Promise<unknown>;
}

/** The used part of a Nest app. Any property may be missing. */
interface NestInternals {
  readonly container?: { getModules?(): ReadonlyMap<string, NestModule> };
}

interface NestModule {
  readonly providers?: ReadonlyMap<unknown, { readonly instance?: unknown }>;
}

/** Only a `Worker` has all of these methods. A `Queue` must not match: its pause() is global. */
const METHODS = ['pause', 'resume', 'isPaused', 'isRunning', 'run', 'close'] as const;

/**
 * Pauses the BullMQ workers of an app. Finds providers that are workers, and workers in a provider's
 * fields or lists, as in the `WorkerHost` of @nestjs/bullmq. Without this, only a shutdown hook would
 * close the workers, and other hooks may have closed the database that a running job needs.
 *
 * @returns resolves when the running jobs are done. Ignores errors: the hook that closes the worker
 *   will report them.
 */
export async function pauseQueues(app: unknown): Promise<void> {
  const modules = [...((app as NestInternals).container?.getModules?.().values() ?? [])];
  const instances = modules.flatMap(({ providers }) =>
    [...(providers?.values() ?? [])].map(({ instance }) => instance),
  );
  const candidates = instances.flatMap((each) => [each, ...fieldsOf(each).flat()]);
  const workers = new Set(candidates.filter(isQueueWorker));
  await Promise.allSettled([...workers].map(async (worker) => worker.pause()));
}

/** The values of an object's own fields. Calls no getters. */
function fieldsOf(instance: unknown): unknown[] {
  if (typeof instance !== 'object' || instance === null) return [];
  return Object.values(Object.getOwnPropertyDescriptors(instance)).map(
    ({ value }): unknown => value,
  );
}

function isQueueWorker(value: unknown): value is QueueWorker {
  if (typeof value !== 'object' || value === null) return false;
  return METHODS.every(
    (method) => method in value && typeof Reflect.get(value, method) === 'function',
  );
}
