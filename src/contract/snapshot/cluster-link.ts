import type { IncomingMessage, ServerResponse } from 'node:http';
import type {
  ClusterSnapshot,
  ReloadResult,
  RestartResult,
  WorkerStats,
} from './cluster-snapshot.js';
import type { CollectedMetrics } from './collected-metrics.js';
import type { LeaderRole } from './leader-role.js';
import type { Passage } from './passage.js';
import type { WorkerIdentity } from './worker-identity.js';

/** A listener of any event; `events/` names the events and gives their types. */
export type LinkEventListener = (event: never) => unknown;

/** A snapshot and how long ago the primary took it. */
export interface AgedSnapshot {
  readonly snapshot: ClusterSnapshot;
  /** 0 unless the primary did not answer in time and this is the last known one. */
  readonly ageMs: number;
}

/** The address of the hub, and the token by which it recognises workers of this cluster. */
export interface HubAddress {
  readonly path: string;
  readonly token: string;
}

/** Creates metrics of prom-client, once it is known that the app has metrics. */
export type MetricsContribution = (prefix: string) => Promise<{
  readonly all: readonly object[];
  /** The metrics that have their own label for the worker. */
  readonly labelled: readonly object[];
}>;

/** Serialises and folds metrics. Given by the metrics module, called by the process's link. */
export interface MetricsSource {
  /** All metrics of this process. It does not wait for an app's metric that hangs. */
  serialize(): Promise<string>;
  /** Merges several bodies of ended workers into one with the same totals. */
  fold(bodies: readonly string[]): string;
  /** Adds these metrics. */
  extend?(contribution: MetricsContribution): Promise<void>;
}

/** An app's verdict on its own health. */
export interface HealthVerdict {
  readonly healthy: boolean;
  /** The problem, in words. */
  readonly detail: string | null;
}

/**
 * Gets each request that has ended, except event streams and WebSockets, whose durations only show
 * how long their clients stayed. It runs on the request path: it must be cheap and must not throw.
 */
export interface ResponseObserver {
  /**
   * Its response was sent.
   *
   * @param bytes size of the response with its head; `undefined` where it is not known (HTTP/2).
   */
  finished(
    request: IncomingMessage,
    response: ServerResponse,
    durationMs: number,
    bytes: number | undefined,
  ): void;
  /** The client went away before its response was complete. */
  aborted(request: IncomingMessage): void;
}

/** A request whose work runs in one asynchronous context. */
export interface RequestScope {
  /** The response that waits for the work; `undefined` once it is sent or the client is gone. */
  readonly waiting: ServerResponse | undefined;
}

/** Enters an asynchronous context of that scope, from which the work for its request begins. */
export type EnterScope = (scope: RequestScope) => void;

/** Threads for which the start of the process does not wait. */
export interface ThreadsOfProcess {
  /**
   * Has one thread load all tasks.
   *
   * @throws ClusterConfigurationError if a task cannot be loaded.
   */
  verify(): Promise<void>;
  /** Starts the threads that always run. */
  keep(): void;
}

/**
 * A Nest app's only link to its cluster: `health/`, `metrics/` and `ClusterService` all use it. A
 * worker asks its primary; a process without one answers for itself.
 */
export interface ClusterLink {
  readonly identity: WorkerIdentity;
  /** Whether `bootstrap()` started the program, so that the program does nothing when a thread imports it. */
  readonly bootstrapped: boolean;
  /** Whether the app's own port shows more than that it is up. */
  readonly showsDetails: boolean;
  /** The desired number of worker processes, which share the machine. */
  readonly workers: number;
  /** Whether this process still wants traffic: false from the start of a drain. */
  readonly accepting: boolean;
  readonly leaderRole: LeaderRole;
  /** The current measurements of this process. */
  stats(): WorkerStats;
  /** Answers within 500 ms, with the last known snapshot if need be. */
  snapshot(): Promise<AgedSnapshot>;
  /** Answers within 1 s; for a worker that does not, its last metrics are used. */
  collectMetrics(): Promise<CollectedMetrics>;
  provideMetrics(source: MetricsSource): void;
  /** Metrics of an extra, for when this process is measured. */
  contributeMetrics(contribution: MetricsContribution): void;
  /** How to find the hub of this cluster; `undefined` without a primary. The promise rejects if the cluster cannot have a hub. */
  findHub(): (() => Promise<HubAddress>) | undefined;
  /** Missing if the process cannot have other workers. */
  readonly passage?: Passage | undefined;
  /**
   * Tells the operator something, in one line, once for all workers.
   *
   * @param name the name by which `doctor.ignore` silences it.
   */
  warn(message: string, name?: string): void;
  /** Sets the health check by which the primary tests this process before it relies on it, and how many workers must be ready. */
  provideHealth(check: () => Promise<HealthVerdict>, minReady: ClusterSnapshot['minReady']): void;
  /** @throws ClusterError without a primary. */
  reload(): Promise<ReloadResult>;
  /** @throws ClusterError without a primary, or if the number is out of range. */
  scale(workers: number): Promise<ClusterSnapshot>;
  /** @throws ClusterError without a primary, or if a cluster cannot have that slot. */
  restart(slot: number): Promise<RestartResult>;
  /** Calls `listener` on each event of the cluster with that name; it does not ask the primary first. */
  onEvent(name: string, listener: LinkEventListener): void;
  offEvent(name: string, listener: LinkEventListener): void;
  observeResponses(observer: ResponseObserver): void;
  /** Calls `enter` when the scope of a request begins, and again with each part of its body. */
  followScopes(enter: EnterScope | undefined): void;
  /**
   * Calls `gone` once if the client goes away before its answer is complete; at once if it is gone.
   *
   * @returns a function that ends the watch.
   */
  watchClient(response: ServerResponse, gone: () => void): () => void;
  /**
   * Sets the function that tells whether there is work from before a time (monotonic ms) for which
   * a drain should wait, in addition to requests. It is called from the beginning of the drain on.
   */
  provideTasks(pending: (before: number) => boolean): void;
  /**
   * Makes clients go to other workers after this process has stopped accepting, no faster than the
   * other workers accept them. The drain waits until all clients have left.
   *
   * @param present returns the current clients: more may come until the drain has closed them all.
   * @param leave tells one of them to leave.
   */
  onDrain<T>(present: () => readonly T[], leave: (one: T) => void): void;
  /**
   * Registers the threads of this process, which are verified and started once it serves.
   *
   * @returns false if nothing will do that.
   */
  provideThreads(threads: ThreadsOfProcess): boolean;
  /** Asks for another process in the place of this one, because something in it cannot be stopped or repaired. */
  requestReplacement(reason: string): void;
  /** Reports that the app cannot start: Nest would end the process before anybody sees the error. */
  reportBootFailure(error: unknown): void | Promise<void>;
  /** Tells that an app serves, on this HTTP server if it has one. A process may have several apps. */
  attach(server: unknown): void;
  /** Tells that one of these apps is closing. */
  detach(): void;
  /** Paths to print once the cluster is up. */
  announceEndpoints(paths: readonly string[]): void;
}
