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

/**
 * A Nest app's only link to its cluster. In a worker it asks the primary. Without a primary it
 * describes this process alone.
 */
export interface ClusterLink {
  readonly identity: WorkerIdentity;
  /** Whether `bootstrap()` started the program. If so, a thread may import the program without starting the app. */
  readonly bootstrapped: boolean;
  /** The desired number of worker processes, which share the machine. */
  readonly workers: number;
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
  /** Finds a package's thread; `undefined` without a primary. The promise rejects if the thread cannot run. */
  thread(name: string): (() => Promise<string>) | undefined;
  /**
   * Logs a warning for the operator, in one line. The same warning from several workers is logged
   * once.
   *
   * @param name the name by which `warnings.ignore` silences the warning.
   */
  warn(message: string, name?: string): void;

  stats(): WorkerStats;
  /** Resolves within 1 s. If a worker does not answer in time, its last known metrics are used. */
  collectMetrics(): Promise<CollectedMetrics>;
  provideMetrics(source: MetricsSource): void;
  /** Registers metrics of an optional feature. They are created only if this process has metrics. */
  contributeMetrics(contribution: MetricsContribution): void;
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
  /** Reports that the app cannot start. Without this call, Nest would end the process without a report. */
  reportBootFailure(error: unknown): void | Promise<void>;
  /** Sets the paths of endpoints to print once the cluster is up. */
  announceEndpoints(paths: readonly string[]): void;
  /** Sets the health check that the primary runs on a new process, and how many workers must be ready. */
  provideHealth(check: () => Promise<HealthVerdict>, minReady: ClusterSnapshot['minReady']): void;
  /** Registers threads to verify and start once the process serves. Returns false if this process does neither. */
  provideThreads(threads: ThreadsOfProcess): boolean;
  /**
   * Sets a function that returns whether a drain must wait for work other than requests. `before` is a
   * time in monotonic ms: only work that began earlier counts. Called during a drain.
   */
  provideTasks(pending: (before: number) => boolean): void;
  /**
   * Sets which clients a drain sends to other workers after this process stops accepting. They
   * leave only as fast as the other workers accept them. The drain waits until all have left. More
   * clients may come until then.
   */
  onDrain<T>(present: () => readonly T[], leave: (one: T) => void): void;
}
