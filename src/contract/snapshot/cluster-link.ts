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

/** Of one event or another; see `events/`, which names and types them. */
export type LinkEventListener = (event: never) => unknown;

/** A snapshot and how long ago the primary took it. */
export interface AgedSnapshot {
  readonly snapshot: ClusterSnapshot;
  /** 0 unless the primary did not answer in time and this is the last known one. */
  readonly ageMs: number;
}

/** Where the hub listens, and by what it knows workers of this cluster. */
export interface HubAddress {
  readonly path: string;
  readonly token: string;
}

/** Metrics of prom-client that are made once it is known that there are to be any. */
export type MetricsContribution = (prefix: string) => Promise<{
  readonly all: readonly object[];
  /** Those that tell workers apart by a label of their own. */
  readonly labelled: readonly object[];
}>;

/** Serialises and folds metrics. Given by the metrics module, called by the process's link. */
export interface MetricsSource {
  /** All metrics of this process. It does not wait for an app's metric that hangs. */
  serialize(): Promise<string>;
  /** Several bodies of workers that are gone as one that counts the same. */
  fold(bodies: readonly string[]): string;
  /** Measures this as well. */
  extend?(contribution: MetricsContribution): Promise<void>;
}

/** What an app says of its own health. */
export interface HealthVerdict {
  readonly healthy: boolean;
  /** What is wrong, in words. */
  readonly detail: string | null;
}

/**
 * Told of each request that is over, but for streams of events and WebSockets: how long those
 * took says how long their clients stayed. On the request path: it must be cheap and must not throw.
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
  /** Its client went away before. */
  aborted(request: IncomingMessage): void;
}

/** A request whose work runs in one asynchronous context. */
export interface RequestScope {
  /** The response that waits for what is being done; `undefined` once it is sent, or its client gone. */
  readonly waiting: ServerResponse | undefined;
}

/** Enters an asynchronous context of that scope, from which the work for its request begins. */
export type EnterScope = (scope: RequestScope) => void;

/** Threads that nobody waits for when the process comes up. */
export interface ThreadsOfProcess {
  /**
   * Has one load all that they are to run.
   *
   * @throws ClusterConfigurationError for what stands in the way.
   */
  verify(): Promise<void>;
  /** Starts those that are always to be there. */
  keep(): void;
}

/**
 * What a Nest app knows of the cluster it runs in: the one thing that
 * `health/`, `metrics/` and `ClusterService` talk to. A worker asks its primary;
 * a process without one answers for itself.
 */
export interface ClusterLink {
  readonly identity: WorkerIdentity;
  /** The program was started by `bootstrap()`, and so does nothing where a thread imports it. */
  readonly bootstrapped: boolean;
  /** Whether the app's own port shows more than that it is up. */
  readonly showsDetails: boolean;
  /** Processes like this one that there are to be: they share the machine. */
  readonly workers: number;
  /** Whether this process still wants traffic: false from the start of a drain. */
  readonly accepting: boolean;
  readonly leaderRole: LeaderRole;
  /** What this process measures of itself, now. */
  stats(): WorkerStats;
  /** Answers within 500 ms, with the last known snapshot if need be. */
  snapshot(): Promise<AgedSnapshot>;
  /** Answers within 1 s; a worker that does not is represented by what it last sent. */
  collectMetrics(): Promise<CollectedMetrics>;
  provideMetrics(source: MetricsSource): void;
  /** Metrics of an extra, for when this process is measured. */
  contributeMetrics(contribution: MetricsContribution): void;
  /**
   * How to find the hub of this cluster; `undefined` where there is no primary that could have one.
   * The promise rejects where there can be none.
   */
  findHub(): (() => Promise<HubAddress>) | undefined;
  /** Missing where there is no other worker. */
  readonly passage?: Passage | undefined;
  /**
   * Tells the operator something, in one line, once for all workers.
   *
   * @param name by which `doctor.ignore` silences it.
   */
  warn(message: string, name?: string): void;
  /**
   * How the primary asks whether this process is well before it relies on it, and how many of
   * those like it must be ready.
   */
  provideHealth(check: () => Promise<HealthVerdict>, minReady: ClusterSnapshot['minReady']): void;
  /** @throws ClusterError where there is no primary. */
  reload(): Promise<ReloadResult>;
  /** @throws ClusterError where there is no primary, or for a number that is out of range. */
  scale(workers: number): Promise<ClusterSnapshot>;
  /** @throws ClusterError where there is no primary, or for what is no slot in any cluster. */
  restart(slot: number): Promise<RestartResult>;
  /** Calls `listener` on each event of the cluster with that name; nobody is asked before. */
  onEvent(name: string, listener: LinkEventListener): void;
  offEvent(name: string, listener: LinkEventListener): void;
  observeResponses(observer: ResponseObserver): void;
  /** Calls `enter` where the scope of a request begins, and again with each part of its body. */
  followScopes(enter: EnterScope | undefined): void;
  /**
   * Calls `gone` once if the client goes away before its answer is complete; at once if it is gone.
   *
   * @returns what ends the watch.
   */
  watchClient(response: ServerResponse, gone: () => void): () => void;
  /**
   * Whether there is work from before then (monotonic ms) that a drain should wait for, beside its
   * requests. It is asked from the beginning of the drain on.
   */
  provideTasks(pending: (before: number) => boolean): void;
  /**
   * Has clients go elsewhere once this process has ceased to accept, at a pace at which other workers
   * take them in. Its drain waits until nobody is left.
   *
   * @param present those who are there now: until the drain has closed them all, others may come.
   * @param leave tells one of them to leave.
   */
  onDrain<T>(present: () => readonly T[], leave: (one: T) => void): void;
  /**
   * What is to be done about the threads of this process once it serves.
   *
   * @returns false where nobody will see to that.
   */
  provideThreads(threads: ThreadsOfProcess): boolean;
  /** Something in this process cannot be stopped or repaired: another should take its place. */
  requestReplacement(reason: string): void;
  /** The app cannot come up, and Nest will end the process before the error gets anywhere. */
  reportBootFailure(error: unknown): void | Promise<void>;
  /** An app serves: on this HTTP server, where it has one. A process may have several. */
  attach(server: unknown): void;
  /** One of those apps is being closed. */
  detach(): void;
  /** Paths to print once the cluster is up. */
  announceEndpoints(paths: readonly string[]): void;
}
