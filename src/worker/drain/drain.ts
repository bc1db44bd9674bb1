import { setTimeout as delay } from 'node:timers/promises';
import type { DrainReport } from '../../contract/messages.js';
import type { ResolvedClusterOptions } from '../../contract/options/resolve.js';
import { MAX_TIMER_MS } from '../../contract/options/checks.js';
import { inTime } from '../../contract/process/in-time.js';
import { pollOnce } from '../../contract/process/accept-queue.js';
import type { ProcessLink, SentClients } from '../link/process-link.js';
import type { ServedApp } from '../boot/served-app.js';
import type { WorkerSockets } from '../listen/sockets.js';

/** The part of the app that the drain uses. */
export type DrainedApp = Pick<
  ServedApp,
  'app' | 'close' | 'signal' | 'microservices' | 'lameDuck' | 'forced'
> & {
  readonly link: Pick<ProcessLink, 'tracker' | 'hasTasksBefore' | 'clients'>;
  readonly sockets: Pick<WorkerSockets, 'leave'>;
};

/** The interval at which the drain looks for idle connections. */
const SWEEP_MS = 50;

/**
 * Drains a process: ends its traffic, then closes the app. The caller must turn readiness off first.
 * Nest's shutdown hooks run last, because they may close resources that requests in flight need.
 *
 * @param beforeClose is called after all requests have ended, before the shutdown hooks run.
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
  // Waits only for tasks from before the drain. The app may keep starting new tasks.
  const busy = () =>
    link.hasTasksBefore(stoppedAt) || // first, because the call also announces the drain
    accepting ||
    sending ||
    tracker.openConnections > 0 ||
    microservices.busy;
  while (busy() && !forced.signal.aborted && performance.now() < deadline) {
    if (accepting) tracker.postponeIdle();
    const patient = performance.now() < (stoppedAt + deadline) / 2;
    tracker.closeIdle(patient);
    microservices.closeIdle(patient);
    // Requests may have arrived while the event loop was blocked. Polling once reads them.
    const looked = waitFor(SWEEP_MS, forced.signal).then(pollOnce);
    await (accepting ? Promise.race([looked, accepted]) : looked);
  }
  overdue.abort();
  await accepted;
  // destroyAll() does not count connections that have sent nothing, so new data is read first.
  if (tracker.openConnections > 0) await pollOnce();
  const cut = tracker.destroyAll();
  const abortedRequests = cut.abortedRequests + microservices.running;

  await beforeClose();
  const left = deadline + killTimeoutMs - performance.now();
  const hookError = await closeApp(served, Math.max(left, killTimeoutMs));
  return { ...cut, abortedRequests, hookError };
}

/** Resolves after `ms`, or when `signal` is aborted. */
async function waitFor(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => {});
}

/** The CPU time that another worker spends on a reconnecting client: about two handshakes. */
const CLIENT_COST_MS = 2;
const STEP_MS = 10;

/**
 * Makes all clients reconnect to other workers within `withinMs`, a few at a time so that those
 * workers are not overloaded. Resolves when all clients have left and `over` is aborted.
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

/** Runs Nest's shutdown hooks. @returns the message of a hook's error, or `null`. */
async function closeApp(
  served: Pick<DrainedApp, 'close' | 'signal'>,
  timeoutMs: number,
): Promise<string | null> {
  const late = `app.close() did not finish within ${Math.round(timeoutMs)} ms`;
  try {
    const closed = served.close(served.signal).then(() => null);
    return await inTime<string | null>(closed, Math.min(timeoutMs, MAX_TIMER_MS), () => late);
  } catch (error) {
    return `a shutdown hook failed: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** The part of a BullMQ `Worker` that is used here. Not imported, because the app may not use BullMQ. */
interface QueueWorker {
  /** Takes no more jobs. Resolves when the running jobs are done. */
  pause(): Promise<unknown>;
}

/** The part of a Nest app that is used here. Any property may be missing. */
interface NestInternals {
  readonly container?: { getModules?(): ReadonlyMap<string, NestModule> };
}

interface NestModule {
  readonly providers?: ReadonlyMap<unknown, { readonly instance?: unknown }>;
}

/** Only a `Worker` has all these methods. A `Queue` must not match: its pause() pauses all workers. */
const METHODS = ['pause', 'resume', 'isPaused', 'isRunning', 'run', 'close'] as const;

/**
 * Pauses the app's BullMQ workers and waits for their running jobs. Otherwise a shutdown hook could
 * close the database while a job needs it. A worker can be a provider, or be in a field or list of a
 * provider, as in the `WorkerHost` of @nestjs/bullmq.
 *
 * Ignores errors: the shutdown hook that closes the worker reports them.
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

/** The values of an object's own fields. Skips getters, because they may have side effects. */
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
