import type { WorkerStats } from './cluster-snapshot.js';
import type { Socket } from 'node:net';
import type { CollectedMetrics } from './collected-metrics.js';

/** The address of the hub, and the token by which it recognises workers of this cluster. */
export interface HubAddress {
  readonly path: string;
  readonly token: string;
}

/** Creates metrics of prom-client. Called once it is known that the app has metrics. */
export type MetricsContribution = () => Promise<{
  readonly all: readonly object[];
  /** The metrics that already have a label for the worker. */
  readonly labelled: readonly object[];
}>;

/** Serialises and merges metrics. Provided by the metrics module and called by the link of the process. */
export interface MetricsSource {
  /** Serialises all metrics of this process. Does not wait for a metric of the app that hangs. */
  serialize(): Promise<string>;
  /** Merges several bodies of ended workers into one with the same totals. */
  fold(bodies: readonly string[]): string;
  /** Adds metrics of another feature of this package. */
  extend?(contribution: MetricsContribution): Promise<void>;
}

/** The facts that a leader gets. Times are in ms, as from `Date.now()`. */
export interface Leading {
  /** Whether this process has just become the leader. */
  readonly fresh: boolean;
  /** Jobs that were due before this time belong to an earlier leader; `undefined` if no worker led before. */
  readonly since: number | undefined;
  /** Names of jobs that run once in the life of the cluster and have begun. */
  readonly done: readonly string[];
}

/** Whether this process runs the jobs that only one process may run. */
export interface LeaderRole {
  /** Whether this process leads now. After the first read, the primary reports changes to this process. */
  readonly leads: boolean;
  /** Whether this process should now begin a job that was due at `due` (`Date.now()`). */
  owns(due: number): boolean;
  /** Calls `told` when this process begins to lead, and several times a second while it leads. */
  follow(told: (leading: Leading) => void): void;
  /** Reports that a job has begun that must run only once in the life of the cluster. */
  begun(job: string): void;
}

/** Applies the limit of open connections to connections between workers, which need descriptors too. */
export interface RelayLimit {
  /** Whether another connection may be opened. If not, this call counts a refused connection. */
  admits(): boolean;
  /** Counts a connection between workers until it closes. */
  count(socket: Socket): void;
}

/** Measurements, and the state that the processes of a cluster share. */
export interface SharedStatePort {
  /** The current measurements of this process. */
  stats(): WorkerStats;
  readonly leaderRole: LeaderRole;
  /** Resolves within 1 s. If a worker does not answer in time, its last known metrics are used. */
  collectMetrics(): Promise<CollectedMetrics>;
  provideMetrics(source: MetricsSource): void;
  /** Registers metrics of an optional feature, which are created if this process has metrics. */
  contributeMetrics(contribution: MetricsContribution): void;
  /** Finds the hub of this cluster; `undefined` without a primary. The promise rejects if the cluster cannot have a hub. */
  findHub(): (() => Promise<HubAddress>) | undefined;
  /** Missing if the cluster cannot have other workers. */
  readonly connectionLimit?: RelayLimit | undefined;
}
