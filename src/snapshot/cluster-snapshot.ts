/** A worker's life. Leaving `starting` or `ready` without being asked is a failure. */
export type WorkerState = 'starting' | 'ready' | 'draining' | 'exited';

/**
 * Why a worker failed.
 *
 * - `boot`: it never became ready. `crash`: an error or a signal of its own.
 * - `exit`: it ended itself with code 0. `hang`: it stopped answering.
 * - `killed`: a signal from outside.
 */
export type FailureCause = 'boot' | 'crash' | 'exit' | 'hang' | 'killed';

/** Why a worker was asked to leave. `signal` = it received SIGTERM itself. */
export type RetireCause = 'shutdown' | 'signal';

export const FAILURE_CAUSES: readonly FailureCause[] = ['boot', 'crash', 'exit', 'hang', 'killed'];

/** How a worker of a slot ended. */
export interface WorkerExit {
  readonly cause: FailureCause | RetireCause;
  readonly code: number | null;
  readonly signal: string | null;
  /** ISO 8601, UTC. */
  readonly at: string;
}

/** What a worker measures of itself. */
export interface WorkerStats {
  readonly residentMemoryBytes: number;
  readonly heapUsedBytes: number;
  /** Share of the last interval that the event loop was busy, 0..1. */
  readonly eventLoopUtilization: number;
  /** 99th percentile of the event loop's delay over the last interval. */
  readonly eventLoopDelayP99Ms: number;
  readonly openConnections: number;
  readonly requestsInFlight: number;
  /** Responses finished. */
  readonly requestsTotal: number;
}

/** One worker as the primary sees it. Measurements are `null` until its first heartbeat. */
export type WorkerSnapshot = {
  readonly slot: number;
  /** `null` while the slot waits for a restart. */
  readonly pid: number | null;
  readonly generation: number;
  readonly state: WorkerState;
  readonly uptimeSeconds: number;
  /** Failures of this slot that were answered by a new worker. */
  readonly restarts: number;
  readonly restartsByCause: Readonly<Partial<Record<FailureCause, number>>>;
  readonly lastExit: WorkerExit | null;
  /** Time since its last sign of life. Far above the heartbeat interval = blocked or stopped. */
  readonly heartbeatAgeMs: number | null;
  /** Whether it answers its pings in time. A blocked or stopped worker does not. */
  readonly responsive: boolean;
} & { readonly [K in keyof WorkerStats]: WorkerStats[K] | null };

/** The whole cluster at one moment: what `/health` and `/metrics` are made of. */
export interface ClusterSnapshot {
  readonly balancing: string;
  /** Workers there should be. */
  readonly desired: number;
  /** Workers that are ready. */
  readonly ready: number;
  /** Rolling reloads since the primary started. */
  readonly generation: number;
  /** Slots in a crash loop. */
  readonly degraded: number;
  /** By slot; a slot that is being replaced is listed once for each of its processes. */
  readonly workers: readonly WorkerSnapshot[];
}
