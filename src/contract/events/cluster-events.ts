import type { BlockReport, ErrorReport } from '../ipc/index.js';
import type {
  FailureCause,
  ReloadResult,
  ReplaceCause,
  RetireCause,
  WorkerIdentity,
} from '../snapshot/index.js';

/**
 * What happens in a cluster, by name. Each is one line of the log, but for `worker-exit` and
 * `leader`, and one event of the primary's runtime.
 */
export interface ClusterEvents {
  /** The primary begins. */
  starting: { workers: number; pid: number; node: string };
  /** The first worker is ready: the address answers, where the app has an HTTP server. */
  listening: {
    /** `null` where it has none. */
    url: string | null;
    workers: number;
    balancing: string;
    /** With the strategy `ports`, the port of each slot; else none. */
    ports: readonly number[];
    endpoints: readonly string[];
    /** Where the primary itself answers, if it was asked to. */
    adminUrl: string | null;
  };
  /** Each slot has had a worker that is ready, or is in a crash loop. */
  started: ClusterEvents['listening'] & {
    /** Slots that have had one. */
    ready: number;
    durationMs: number;
    fastestMs: number;
    slowestMs: number;
  };
  'worker-ready': { worker: WorkerIdentity; bootMs: number };
  'worker-died': {
    worker: WorkerIdentity;
    cause: FailureCause;
    /** In words: exit code or signal, and what is known beyond it. */
    detail: string;
    uptimeMs: number;
    error: ErrorReport | null;
    /** What blocked its event loop, where it was killed for that and has a watchdog. */
    blocked: BlockReport | null;
  };
  /** An error that nobody caught: it serves what it has begun and ends; another takes its place. */
  'worker-failing': { worker: WorkerIdentity; error: ErrorReport | null };
  'worker-restarting': { slot: number; delayMs: number; failures: number; degraded: boolean };
  /** It still serves; a new one is started beside it. */
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
    /** Connections that the kernel had accepted and no worker had: reset as their socket was closed. */
    unacceptedConnections: number;
    destroyedConnections: number;
    abortedRequests: number;
    /** WebSockets among the connections. */
    destroyedWebSockets: number;
    /** What did not end well, in words. */
    problem: string | null;
  };
  /** A worker has ended, whatever the reason: comes after `worker-died` or `worker-stopped`. */
  'worker-exit': {
    worker: WorkerIdentity;
    cause: FailureCause | RetireCause;
    /** Nobody had asked it to. */
    failed: boolean;
    /** How it failed, or what did not end well, in words. */
    detail: string | null;
  };
  /** Another worker leads: it runs what one alone is to run. Without `worker`: for now none can. */
  leader: { worker?: WorkerIdentity };
  /** A request has ended workers: it is answered 503, and one is tried a minute. */
  quarantined: QuarantinedRequest & {
    /** Every request of the route, and not of the one URL alone. */
    wholeRoute: boolean;
    /** Workers that it has ended. */
    deaths: number;
  };
  /** One was tried, and did no harm: the app answers it again. */
  'quarantine-ended': QuarantinedRequest;
  /** Every worker is to be replaced by one of the program as it is now. */
  'reload-started': { generation: number; reason: string };
  /** A release failed: its slots go back to the one before, generation `to`. */
  'reload-reverting': { generation: number; to: number; reason: string };
  'reload-ended': ReloadResult & { durationMs: number };
  scaling: { from: number; to: number; reason: string };
  /** The cluster was asked to stop. `force` counts the further signals. */
  stopping: { reason: string; workers: number; force: 'drain' | 'destroy' | 'kill' };
  stopped: { exitCode: number; uptimeMs: number };
  /** The cluster gives up: `exitCode` says why (69, 70, 78). */
  failed: { message: string; exitCode: number; error: ErrorReport | null };
  /** Something unexpected that the cluster survives. */
  warning: { message: string; worker?: WorkerIdentity; error?: ErrorReport };
}

/** A request that has ended workers. */
export interface QuarantinedRequest {
  method: string;
  /** Template of its route; `null` where no route of Nest's has its path. */
  route: string | null;
  /** Without the query. */
  path: string;
}

/** Name of an event: the first argument of the primary's `on()` and `off()`. */
export type ClusterEventName = keyof ClusterEvents;

/** Listeners by the name of their event: the option `on` of `bootstrap()`. */
export type ClusterEventListeners = {
  readonly [N in ClusterEventName]?:
    ((event: ClusterEvents[N]) => void | Promise<void>) | undefined;
};

/** What is made of some events, by their name. */
export type EventHandlers<R> = {
  readonly [N in ClusterEventName]?: (event: ClusterEvents[N]) => R;
};

/** How the parts of the package tell what happened. */
export type EmitEvent = <N extends ClusterEventName>(name: N, event: ClusterEvents[N]) => void;
