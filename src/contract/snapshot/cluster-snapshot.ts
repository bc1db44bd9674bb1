import type { WorkerIdentity } from './worker-identity.js';

/** A worker's life. A worker that leaves `starting` or `ready` without being asked has failed. */
export type WorkerState = 'starting' | 'ready' | 'draining' | 'exited';

export const FAILURE_CAUSES = ['boot', 'crash', 'exit', 'oom', 'hang', 'memory', 'killed'] as const;

/**
 * Why a worker failed.
 *
 * - `boot`: it never became ready. `crash`: an error or a signal of its own.
 * - `exit`: it ended itself with code 0. `hang`: it stopped answering.
 * - `oom`: V8 or the kernel ran out of memory for it. `memory`: it grew over a
 *   limit of the `memory` options.
 * - `killed`: a signal from outside.
 */
export type FailureCause = (typeof FAILURE_CAUSES)[number];

/** Why a serving worker is replaced. The new worker is ready before the old one leaves. */
export type ReplaceCause = 'reload' | 'recycle' | 'memory' | 'restart';

/** Why a worker was asked to leave. `signal` = it received SIGTERM itself. */
export type RetireCause = ReplaceCause | 'scale' | 'shutdown' | 'signal';

export const RELOAD_OUTCOMES = ['completed', 'aborted', 'reverted'] as const;

/**
 * `completed`: every worker is of the new generation. `aborted`: a new worker failed, and the
 * release before serves on. `reverted`: a worker failed after the reload was completed, while its
 * release was observed, and the release before is back.
 */
export type ReloadOutcome = (typeof RELOAD_OUTCOMES)[number];

/** How a rolling reload ended. */
export interface ReloadResult {
  readonly outcome: ReloadOutcome;
  /** Number of this reload, and of the workers that it forked. */
  readonly generation: number;
  /** Why it was aborted or reverted. */
  readonly reason: string | null;
}

/** How the restart of one worker ended. */
export interface RestartResult {
  /** `aborted`: the new worker failed and the old one serves on, or there was nothing to replace. */
  readonly outcome: Exclude<ReloadOutcome, 'reverted'>;
  readonly slot: number;
  /** Why it was aborted. */
  readonly reason: string | null;
}

/** How a worker of a slot ended. */
export interface WorkerExit {
  readonly cause: FailureCause | RetireCause;
  readonly code: number | null;
  readonly signal: string | null;
  /** ISO 8601, UTC. */
  readonly at: string;
}

/** The measurements that a process takes of itself. */
export interface ProcessStats {
  readonly residentMemoryBytes: number;
  readonly heapUsedBytes: number;
  /** Share of the last interval that the event loop was busy, 0..1. */
  readonly eventLoopUtilization: number;
  /** 99th percentile of the event loop's delay over the last interval. */
  readonly eventLoopDelayP99Ms: number;
  /** CPU time since it started, user and system, of all its threads. */
  readonly cpuSecondsTotal: number;
  /** Time spent in garbage collections since it started. */
  readonly gcSecondsTotal: number;
}

/** The measurements that a worker takes of itself. */
export interface WorkerStats extends ProcessStats {
  readonly openConnections: number;
  readonly requestsInFlight: number;
  /** Responses finished. */
  readonly requestsTotal: number;
  /** Connections closed because their clients were asked to connect again, for the balance. */
  readonly rebalancedConnectionsTotal: number;
  /** Lines that it could not write to standard output or standard error. */
  readonly logLinesDroppedTotal: number;
  /** Connections turned away because the limit of open files had no room for more. */
  readonly droppedConnectionsTotal: number;
}

/** The measurements that the primary takes of itself. */
export interface PrimaryStats extends ProcessStats {
  readonly pid: number;
  readonly uptimeSeconds: number;
  /** Lines that it could not write to standard output or standard error. */
  readonly logLinesDroppedTotal: number;
}

/** Counts that a slot adds up over all its workers, past and present. */
export const SLOT_TOTALS = [
  'requestsTotal',
  'rebalancedConnectionsTotal',
  'logLinesDroppedTotal',
  'droppedConnectionsTotal',
  'cpuSecondsTotal',
  'gcSecondsTotal',
] as const satisfies readonly (keyof WorkerStats)[];

/** Counts of a slot over all its workers, past and present. */
export type SlotCounts = {
  readonly slot: number;
  readonly restartsByCause: Readonly<Partial<Record<FailureCause, number>>>;
  /** Requests that were cut off because a drain reached its deadline. */
  readonly abortedRequestsTotal: number;
  /** Messages of its workers that do not match the protocol. */
  readonly droppedMessagesTotal: number;
  /** Times that metrics of its workers were too large for the primary to hold. */
  readonly refusedMetricsTotal: number;
} & Pick<WorkerStats, (typeof SLOT_TOTALS)[number]>;

/** One worker as the primary sees it. Measurements are `null` until its first heartbeat. */
export type WorkerSnapshot = SlotCounts & {
  /** `null` while the slot waits for a restart. */
  readonly pid: number | null;
  readonly generation: number;
  readonly state: WorkerState;
  readonly uptimeSeconds: number;
  /** Workers of this slot that failed, or grew over the soft memory limit, and were replaced. */
  readonly restarts: number;
  readonly lastExit: WorkerExit | null;
  /** In a crash loop: its workers fail again and again. */
  readonly degraded: boolean;
  /** Time since its last sign of life. Far above the heartbeat interval = blocked or stopped. */
  readonly heartbeatAgeMs: number | null;
  /** Whether it answers its pings in time. A blocked or stopped worker does not. */
  readonly responsive: boolean;
} & { readonly [K in Exclude<keyof WorkerStats, keyof SlotCounts>]: WorkerStats[K] | null };

/** The whole cluster at one moment: the source of `/health` and `/metrics`. */
export interface ClusterSnapshot {
  readonly balancing: string;
  /** With the strategy `ports`, the port of each slot that ever existed; otherwise empty. */
  readonly ports: readonly number[];
  /** The desired number of workers. */
  readonly desired: number;
  /** Workers that are ready. */
  readonly ready: number;
  /** Workers that must be ready for the cluster to be up: a count, a share of the desired ones below 1, or all. */
  readonly minReady: number | 'all';
  /** Number of the last rolling reload that was completed. */
  readonly generation: number;
  /** Slots in a crash loop. */
  readonly degraded: number;
  /** Requests under quarantine; a primary of another version does not send it. */
  readonly quarantined?: number;
  /** Reloads since the primary started, by how they ended. */
  readonly reloads: Readonly<Record<ReloadOutcome, number>>;
  /** Slots that were scaled away: their counters must be kept. */
  readonly dismissed: readonly SlotCounts[];
  /** By slot; a slot that is being replaced is listed once for each of its processes. */
  readonly workers: readonly WorkerSnapshot[];
  /** The worker that runs the jobs of the leader; a primary of another version does not send it. */
  readonly leader?: WorkerIdentity | null;
  /** `null` without a primary: with `workers: 0`, and without `bootstrap()`. */
  readonly primary: PrimaryStats | null;
}
