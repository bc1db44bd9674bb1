import type { ErrorReport } from '../errors/error-report.js';
import type { BlockedRequest, BlockReport } from '../messages.js';
import type {
  FailureCause,
  ReloadResult,
  ReplaceCause,
  RetireCause,
  WorkerIdentity,
} from '../snapshot/types.js';

/**
 * The events of a cluster, by name. The primary's runtime emits each event. Each event except
 * `worker-exit` and `leader` is also logged as one line.
 */
export interface ClusterEventMap {
  /** The primary starts. */
  starting: { workers: number; pid: number; node: string };
  /** The first worker is ready. If the app has an HTTP server, its address now answers requests. */
  listening: {
    /** URL of the app; `null` without an HTTP server. */
    url: string | null;
    workers: number;
    balancing: string;
    /** With the strategy `ports`, the port of each slot; otherwise empty. */
    ports: readonly number[];
    endpoints: readonly string[];
    /** URL of the admin listener; `null` if there is none. */
    adminUrl: string | null;
  };
  /** Each slot has had a ready worker or is in a crash loop. */
  started: ClusterEventMap['listening'] & {
    /** Number of slots that have had a ready worker. */
    ready: number;
    durationMs: number;
    fastestMs: number;
    slowestMs: number;
  };
  /** The worker serves. `bootMs` is the time since its fork. */
  'worker-ready': { worker: WorkerIdentity; bootMs: number };
  'worker-died': {
    worker: WorkerIdentity;
    cause: FailureCause;
    /** How the worker died, in words: the exit code or signal, and further details. */
    detail: string;
    uptimeMs: number;
    error: ErrorReport | null;
    /** The request that caused the error, or else the requests in flight, newest first. */
    requests: readonly BlockedRequest[];
    /** The watchdog's report, if the worker was killed because its event loop was blocked. */
    blocked: BlockReport | null;
  };
  /** The worker has an uncaught error. It finishes its requests and exits, and a new worker takes its place. */
  'worker-failing': {
    worker: WorkerIdentity;
    error: ErrorReport | null;
    /** The request that caused the error, or else the requests in flight, newest first. */
    requests: readonly BlockedRequest[];
  };
  'worker-restarting': { slot: number; delayMs: number; failures: number; degraded: boolean };
  /** The worker still serves while its replacement starts. */
  'worker-replacing': {
    worker: WorkerIdentity;
    cause: Exclude<ReplaceCause, 'reload'>;
    detail: string;
  };
  'worker-draining': { worker: WorkerIdentity; cause: RetireCause };
  'worker-stopped': {
    worker: WorkerIdentity;
    cause: RetireCause;
    drainMs: number;
    destroyedConnections: number;
    abortedRequests: number;
    /** WebSockets among the destroyed connections. */
    destroyedWebSockets: number;
    /** A problem as the worker ended, in words; `null` if there was none. */
    problem: string | null;
  };
  /** A worker has ended for any reason. This event follows `worker-died` or `worker-stopped`. */
  'worker-exit': {
    worker: WorkerIdentity;
    cause: FailureCause | RetireCause;
    /** Whether the worker ended without being asked to. */
    failed: boolean;
    /** How the worker failed, or a problem while it ended, in words. */
    detail: string | null;
  };
  /** `worker` is the new leader: it runs the jobs that only one worker may run. Without `worker`, no worker can lead now. */
  leader: { worker?: WorkerIdentity };
  /** The primary begins to replace every worker with a worker that runs the current program. */
  'reload-started': { generation: number; reason: string };
  /** A release failed and is rolled back to the previous release, generation `to`. */
  'reload-reverting': { generation: number; to: number; reason: string };
  'reload-ended': ReloadResult & { durationMs: number };
  scaling: { from: number; to: number; reason: string };
  /** The cluster was asked to stop. Each further signal raises `force` by one level. */
  stopping: { reason: string; workers: number; force: 'drain' | 'destroy' | 'kill' };
  stopped: { exitCode: number; uptimeMs: number };
  /** The cluster gives up. `exitCode` shows the reason (69, 70, 78). */
  failed: { message: string; exitCode: number; error: ErrorReport | null };
  /** Something unexpected happened. The cluster keeps running. */
  warning: { message: string; worker?: WorkerIdentity; error?: ErrorReport };
}

/** Name of an event: the first argument of the primary's `on()` and `off()`. */
export type ClusterEventName = keyof ClusterEventMap;

/** Listeners by event name: the option `on` of `bootstrap()`. */
export type ClusterEventListeners = {
  readonly [N in ClusterEventName]?:
    ((event: ClusterEventMap[N]) => void | Promise<void>) | undefined;
};

/** Functions that map an event to a value, by event name. */
export type EventHandlers<R> = {
  readonly [N in ClusterEventName]?: (event: ClusterEventMap[N]) => R;
};

export type EmitEvent = <N extends ClusterEventName>(name: N, event: ClusterEventMap[N]) => void;
