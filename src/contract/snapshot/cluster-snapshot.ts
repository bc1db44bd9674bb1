import type { FailureCause, ReloadOutcome, RetireCause, WorkerIdentity } from './types.js';
import type { CounterName, ProcessStats, WorkerStats } from '../stats.js';

/** The state of a worker. A worker that exits from `starting` or `ready` without being asked has failed. */
export type WorkerState = 'starting' | 'ready' | 'draining' | 'exited';

/** How a rolling reload ended. */
export interface ReloadResult {
  readonly outcome: ReloadOutcome;
  /** Generation of the workers that this reload forked. */
  readonly generation: number;
  /** Why the reload was aborted or reverted; `null` if it completed. */
  readonly reason: string | null;
}

/** How the restart of one worker ended. */
export interface RestartResult {
  /** `aborted`: the new worker failed and the old worker keeps serving, or there was nothing to replace. */
  readonly outcome: Exclude<ReloadOutcome, 'reverted'>;
  readonly slot: number;
  /** Why the restart was aborted; `null` if it completed. */
  readonly reason: string | null;
}

/** How a worker of a slot ended. */
export interface WorkerExit {
  readonly cause: FailureCause | RetireCause;
  readonly code: number | null;
  readonly signal: string | null;
  /** Time of the exit in ISO 8601, UTC. */
  readonly at: string;
}

/** The measurements that the primary takes of itself. */
export interface PrimaryStats extends ProcessStats {
  readonly pid: number;
  readonly uptimeSeconds: number;
}

/** Counts of a slot over all its workers, past and present. */
export type SlotCounts = {
  readonly slot: number;
  readonly restartsByCause: Readonly<Partial<Record<FailureCause, number>>>;
  /** Requests that were aborted because a drain reached its deadline. */
  readonly abortedRequestsTotal: number;
} & Pick<WorkerStats, CounterName>;

/** One worker as the primary sees it. Measurements are `null` until the worker's first heartbeat. */
export type WorkerSnapshot = SlotCounts & {
  /** Process id of the worker; `null` while the slot waits for a restart. */
  readonly pid: number | null;
  readonly generation: number;
  readonly state: WorkerState;
  readonly uptimeSeconds: number;
  /** Number of workers of this slot replaced after a failure or for exceeding the soft memory limit. */
  readonly restarts: number;
  readonly lastExit: WorkerExit | null;
  /** Whether the slot is in a crash loop: its workers fail again and again. */
  readonly degraded: boolean;
  /** Time since the primary last heard from the worker. If it is far above the heartbeat interval, the worker is blocked or stopped. */
  readonly heartbeatAgeMs: number | null;
  /** Whether the worker answers pings in time. A blocked or stopped worker does not. */
  readonly responsive: boolean;
} & { readonly [K in Exclude<keyof WorkerStats, keyof SlotCounts>]: WorkerStats[K] | null };

/** Connections that wait in the kernel until a worker accepts them. */
export interface Backlog {
  /** The address, for example `http://127.0.0.1:3000`. */
  readonly socket: string;
  readonly connections: number;
}

/** The whole cluster at one moment: the source of `/health` and `/metrics`. */
export interface ClusterSnapshot {
  readonly balancing: string;
  /** With the strategy `ports`, the port of each slot that ever existed; otherwise empty. */
  readonly ports: readonly number[];
  /** The desired number of workers. */
  readonly desired: number;
  /** Number of workers that are ready. */
  readonly ready: number;
  /** Workers that must be ready for the cluster to be up: a count, a share below 1 of the desired workers, or `'all'`. */
  readonly minReady: number | 'all';
  /** The generation of the last completed reload. */
  readonly generation: number;
  /** Number of slots in a crash loop. */
  readonly degraded: number;
  /** Empty where no queue can be read: without /proc, for unix sockets, with round-robin. */
  readonly acceptBacklog?: readonly Backlog[];
  /** Reloads since the primary started, by outcome. */
  readonly reloads: Readonly<Record<ReloadOutcome, number>>;
  /** Counters of slots that were removed by scaling down, kept so that totals do not fall. */
  readonly dismissed: readonly SlotCounts[];
  /** Ordered by slot. A slot whose worker is being replaced is listed once for each of its processes. */
  readonly workers: readonly WorkerSnapshot[];
  /** The leader. Missing if the primary runs a version without this field. */
  readonly leader?: WorkerIdentity | null;
  /** `null` without a primary: with `workers: 0`, and without `bootstrap()`. */
  readonly primary: PrimaryStats | null;
}

/** The requests and the stack of a worker, blocked or not. */
export interface WorkerStack {
  readonly slot: number;
  readonly pid: number;
  /** How long the event loop has been blocked, in ms; `null` if it is not blocked. */
  readonly blockedForMs: number | null;
  /** Requests in flight, oldest first, at most ten. Paths omit the query. */
  readonly requests: readonly {
    readonly method: string;
    readonly path: string;
    readonly forMs: number;
  }[];
  /** JavaScript frames, innermost first; empty if the event loop is idle. */
  readonly frames: readonly string[];
  /** Why the stack is not known, in words; `null` if it is known. */
  readonly problem: string | null;
}

/** The recordings that also work while a worker is blocked. */
export type RecordingKind = 'cpu-profile' | 'heap-profile';

export interface Recording {
  readonly kind: RecordingKind;
  readonly seconds: number;
}
