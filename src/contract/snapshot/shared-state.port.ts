import type { WorkerStats } from './cluster-snapshot.js';
import type { Socket } from 'node:net';
import type { CollectedMetrics } from './collected-metrics.js';

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

/** The facts that a leader gets. Times are of `Date.now()`. */
export interface Leading {
  /** Whether this process did not lead just before. */
  readonly fresh: boolean;
  /** Jobs that were due before this time belong to an earlier leader; `undefined` if nobody led before. */
  readonly since: number | undefined;
  /** Names of jobs that still run in other workers. */
  readonly busy: readonly string[];
  /** Names of jobs that run once in the life of the cluster and have begun. */
  readonly done: readonly string[];
}

/** Whether this process runs the jobs that only one process may run. */
export interface LeaderRole {
  /** Whether it leads now. The first read makes the primary report it from then on. */
  readonly leads: boolean;
  /** Whether this process should now begin a job that was due at `due` (`Date.now()`). */
  owns(due: number): boolean;
  /** Calls `told` when this process begins to lead, and several times a second while it leads. */
  follow(told: (leading: Leading) => void): void;
  /**
   * Reports the running jobs. `done`: the name of a job that is to run once.
   *
   * @param of the owner of the jobs: each Nest app of the process has its own jobs.
   */
  tellRunning(of: object, running: readonly string[], done?: string): void;
}

/** An open connection as Node passes it between processes: libuv's handle. */
export interface PassedHandle {
  close(): void;
}

/** Takes a connection that another worker has passed on, with the bytes that were read from it. */
export type TakeConnection = (handle: PassedHandle, head: Buffer) => void;

/** The limit of open connections, for those between workers: each of them takes a descriptor, too. */
export interface RelayLimit {
  /** Whether there may be another one; if not, a connection counts as turned away. */
  admits(): boolean;
  /** Counts a connection between workers until it closes. */
  count(socket: Socket): void;
}

/** Passes open connections from worker to worker, through the primary. */
export interface Passage {
  /** Missing where nothing is limited. */
  readonly limit?: RelayLimit;
  /** From now on this process gets the connections that are passed to `name`. Resolves once the primary knows. */
  open(name: string, take: TakeConnection): Promise<void>;
  /**
   * Passes a connection on. It comes back to `from` if nobody has the name `to` any more.
   *
   * @param from a name of this process.
   * @param head the bytes that were read from the connection.
   * @returns resolves once `handle` may be closed here; `undefined` if it cannot be passed.
   */
  pass(to: string, from: string, handle: PassedHandle, head: Buffer): Promise<void> | undefined;
}

/** Measurements, and the state that the processes of a cluster share. */
export interface SharedStatePort {
  /** The current measurements of this process. */
  stats(): WorkerStats;
  readonly leaderRole: LeaderRole;
  /** Answers within 1 s; for a worker that does not, its last metrics are used. */
  collectMetrics(): Promise<CollectedMetrics>;
  provideMetrics(source: MetricsSource): void;
  /** Metrics of an extra, for when this process is measured. */
  contributeMetrics(contribution: MetricsContribution): void;
  /** How to find the hub of this cluster; `undefined` without a primary. The promise rejects if the cluster cannot have a hub. */
  findHub(): (() => Promise<HubAddress>) | undefined;
  /** Missing if the process cannot have other workers. */
  readonly passage?: Passage | undefined;
}
