import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ClusterSnapshot, ReloadResult, RestartResult } from './cluster-snapshot.js';
import type { WorkerStats } from '../stats.js';
import type { MetricsContribution } from './prometheus.js';
import type { CollectedMetrics, WorkerIdentity } from './types.js';

/** A listener for any event. `contract/log/events.ts` defines the events and their types. */
export type LinkEventListener = (event: never) => unknown;

export interface AgedSnapshot {
  readonly snapshot: ClusterSnapshot;
  /** Age of the snapshot in ms. 0 if the primary answered in time; else this is the last known snapshot. */
  readonly ageMs: number;
}

/**
 * Called for each request that has ended, except event streams and WebSockets: their durations only
 * show how long the client stayed connected. Must be cheap and must not throw.
 */
export interface ResponseObserver {
  /**
   * The response was sent.
   *
   * @param bytes size of the response with its head; `undefined` if it is not known (HTTP/2).
   */
  finished(
    request: IncomingMessage,
    response: ServerResponse,
    durationMs: number,
    bytes: number | undefined,
  ): void;
  aborted(request: IncomingMessage): void;
}

/** A request whose work runs in one asynchronous context. */
export interface RequestScope {
  /** The response that waits for the work; `undefined` once it is sent or the client has disconnected. */
  readonly waiting: ServerResponse | undefined;
}

export interface HealthVerdict {
  readonly healthy: boolean;
  readonly detail: string | null;
}

/** The threads of a process. Startup does not wait for them. */
export interface ThreadsOfProcess {
  /**
   * Checks that a thread can load all tasks.
   *
   * @throws ClusterConfigurationError if a task cannot be loaded.
   */
  verify(): Promise<void>;
  /** Starts the threads that keep running (`minThreads`). */
  keep(): void;
  /** The share of time in which the threads were busy since the previous call, 0..1. */
  utilization(): number;
}

/** Serialises and merges metrics. Provided by the metrics module and called by the link of the process. */
export interface MetricsSource {
  /** All metrics of this process, encoded by {@link encodeMetrics}. Does not wait if a `collect()` of the app hangs. */
  serialize(): Promise<string>;
  /** Adds metrics of another feature of this package. */
  extend?(contribution: MetricsContribution): Promise<void>;
}

export interface Leading {
  /** Whether this process has just become the first leader of the cluster. */
  readonly isFirst: boolean;
  /** Names of jobs that have begun and must not run again in the life of the cluster. */
  readonly done: readonly string[];
}

/** Whether this process runs the jobs that only one process may run. */
export interface LeaderRole {
  /** Whether this process leads now. After the first read, the primary tells this process of changes. */
  readonly leads: boolean;
  /** Whether this process should now begin a job that was due at `due` (`Date.now()`). */
  owns(due: number): boolean;
  /** Calls `listener` when this process begins to lead, and several times a second while it leads. */
  follow(listener: (leading: Leading) => void): void;
  /** Reports the start of a job that must run only once in the life of the cluster. */
  begun(job: string): void;
}

/** The parts of this process that `@nestjs-cluster/*` packages use. Other packages must not rely on them. */
export interface Extension {
  readonly identity: WorkerIdentity;
  /** The desired number of worker processes. */
  readonly workers: number;
  /**
   * Finds a package's thread, which runs the package's `dist/thread.cjs` in the primary.
   *
   * @param name begins with `@nestjs-cluster/`.
   * @returns a function that asks the primary for the path of the thread's socket. The first call
   *   in the cluster starts the thread. The promise rejects if the thread cannot run. `undefined`
   *   without a primary.
   */
  thread(name: string): (() => Promise<string>) | undefined;
  /**
   * Sets clients that a drain sends to other workers, as fast as those accept them, until all have left.
   *
   * @param present returns the current clients.
   * @param leave asks one client to leave.
   */
  onDrain<T>(present: () => readonly T[], leave: (one: T) => void): void;
  /** Sets a function that returns whether a drain must wait for work other than requests. Only work begun before `before` (monotonic ms) counts. */
  onDrainTasks(pending: (before: number) => boolean): void;
  /** Adds metrics if the app has `/metrics`. */
  metrics(contribution: MetricsContribution): void;
  /** Logs a warning in one line, once for all workers. `warnings.ignore` silences it by its `name`. */
  warn(message: string, name?: string): void;
  /** Reports that the app cannot start. */
  refuseStart(error: unknown): void | Promise<void>;
}

/**
 * A Nest app's only link to its cluster. In a worker it asks the primary. Without a primary it
 * describes this process alone.
 */
export interface ClusterLink extends Extension {
  /** Whether `bootstrap()` started the program. If so, a thread may import the program without starting the app. */
  readonly bootstrapped: boolean;
  /** Whether the app's own port shows details, not just up or down. */
  readonly showsDetails: boolean;
  /** Whether this process accepts new requests: false from the start of a drain. */
  readonly accepting: boolean;
  readonly leaderRole: LeaderRole;

  /** Resolves within 500 ms, if necessary with the last known snapshot. */
  snapshot(): Promise<AgedSnapshot>;
  /** @throws ClusterError without a primary. */
  reload(): Promise<ReloadResult>;
  /** @throws ClusterError without a primary, or if the number is out of range. */
  scale(workers: number): Promise<ClusterSnapshot>;
  /** @throws ClusterError without a primary, or if a cluster cannot have that slot. */
  restart(slot: number): Promise<RestartResult>;
  onEvent(name: string, listener: LinkEventListener): void;
  offEvent(name: string, listener: LinkEventListener): void;

  stats(): WorkerStats;
  /** Resolves within 1 s. If a worker does not answer in time, its last known metrics are used. */
  collectMetrics(): Promise<CollectedMetrics>;
  provideMetrics(source: MetricsSource): void;
  observeResponses(observer: ResponseObserver): void;

  /** Sets whether each request runs in its own asynchronous context. */
  followScopes(on: boolean): void;
  /** The scope that the current code runs in; `undefined` if there is none. */
  readonly scope: RequestScope | undefined;
  /**
   * Calls `gone` once if the client disconnects, or has disconnected, before the response is
   * complete. Returns a function that ends the watch.
   */
  watchClient(response: ServerResponse, gone: () => void): () => void;

  /** Reports a serving app, and its HTTP server if it has one. A process may have several apps. */
  attach(server: unknown): void;
  detach(): void;
  /** Sets the paths of endpoints to print once the cluster is up. */
  announceEndpoints(paths: readonly string[]): void;
  /** Sets the health check that the primary runs on a new process, and how many workers must be ready. */
  provideHealth(check: () => Promise<HealthVerdict>, minReady: ClusterSnapshot['minReady']): void;
  /** Registers threads to verify and start once the process serves. Returns false if this process does neither. */
  provideThreads(threads: ThreadsOfProcess): boolean;
}
