import type { WorkerStats } from '../stats.js';
import type { ClusterSnapshot, WorkerSnapshot } from './cluster-snapshot.js';

export type * from '../stats.js';
export type * from './cluster-link.js';
export type * from './cluster-snapshot.js';
export { CLUSTER_LINK } from './current-link.js';
export type * from './prometheus.js';

/** Identifies a worker. Slots and generations are stable; the system may reuse a pid. */
export interface WorkerIdentity {
  /** Number of the worker's slot, 0..N-1. A restarted worker has the same slot. */
  readonly slot: number;
  readonly pid: number;
  /** Number of rolling reloads before this worker was forked. */
  readonly generation: number;
}

/** The name of a worker in every log line and message: `worker=0 gen=2 pid=4242`. */
export function formatIdentity(worker: WorkerIdentity): string {
  return `worker=${worker.slot} gen=${worker.generation} pid=${worker.pid}`;
}

export const FAILURE_CAUSES = ['boot', 'crash', 'exit', 'oom', 'hang', 'memory', 'killed'] as const;

/**
 * Why a worker failed.
 *
 * - `boot`: it never became ready. `crash`: an uncaught error, an exit code or a fault signal.
 * - `exit`: it exited with code 0. `hang`: it stopped answering.
 * - `oom`: V8 or the kernel ran out of memory. `memory`: it exceeded a limit of
 *   the `memory` options.
 * - `killed`: a signal from outside.
 */
export type FailureCause = (typeof FAILURE_CAUSES)[number];

/** Why a serving worker is replaced. The new worker is ready before the old one leaves. */
export type ReplaceCause = 'reload' | 'recycle' | 'memory' | 'restart';

/** Why a worker was asked to leave. `signal`: the worker itself received SIGTERM. */
export type RetireCause = ReplaceCause | 'scale' | 'shutdown' | 'signal';

/** The reason why all requests are refused during a shutdown. */
export const SHUTTING_DOWN = 'the cluster is shutting down';

export const RELOAD_OUTCOMES = ['completed', 'aborted', 'reverted'] as const;

/**
 * How a reload ended: `completed` (every worker is of the new generation), `aborted` (a new worker
 * failed, and the previous release keeps serving) or `reverted` (all workers were replaced, but one
 * failed while the new release was observed, and the cluster went back to the previous release).
 */
export type ReloadOutcome = (typeof RELOAD_OUTCOMES)[number];

/** Maximum length of one process's serialised metrics. The primary does not keep longer metrics. */
export const MAX_METRICS_BODY_LENGTH = 16 * 1024 * 1024;

/** One worker's metrics, serialised by the worker itself. */
export interface WorkerMetrics {
  readonly slot: number;
  readonly generation: number;
  /** Time since the worker serialised the metrics, in ms. */
  readonly ageMs: number;
  readonly body: string;
}

/** The whole cluster's metrics, to be merged by the process that renders the page. */
export interface CollectedMetrics {
  readonly snapshot: ClusterSnapshot;
  readonly workers: readonly WorkerMetrics[];
  /** For each slot, the summed counters of its exited workers. */
  readonly retired: readonly string[];
  /** Age of the snapshot in ms. Set only if the primary did not answer and the workers' metrics are missing. */
  readonly snapshotAgeMs?: number | undefined;
}

/*
 * The deadlines of a scrape. Each is shorter than the deadline of its caller:
 *
 *     the scraper                                         1,000 ms, as promised
 *     └─ a worker waits for its primary                     900 ms
 *        ├─ first it reads its own metrics                  250 ms
 *        └─ then the primary waits for the other workers    500 ms
 *           └─ each reads its own metrics                   250 ms
 *
 * If a worker's metrics are late, the metrics that it sent last are used.
 */

/** How long a worker waits for the app's `collect()` functions, which all run at the same time. */
export const READ_TIMEOUT_MS = 250;

/** How long the primary waits for the metrics of workers. */
export const COLLECTION_TIMEOUT_MS = 500;

/** How long a worker waits for the metrics of all workers. */
export const SCRAPE_TIMEOUT_MS = 900;

/** The snapshot of a worker without restarts, for a process without a primary and for a fake cluster. */
export function workerSnapshot(
  identity: WorkerIdentity,
  stats: WorkerStats,
  { state, uptimeSeconds }: Pick<WorkerSnapshot, 'state' | 'uptimeSeconds'>,
): WorkerSnapshot {
  return {
    ...identity,
    state,
    uptimeSeconds,
    restarts: 0,
    restartsByCause: {},
    lastExit: null,
    degraded: false,
    abortedRequestsTotal: 0,
    heartbeatAgeMs: 0,
    responsive: true,
    ...stats,
  };
}

/** The snapshot of a cluster without a primary. */
export function snapshotOf(
  workers: readonly WorkerSnapshot[],
  about: Pick<ClusterSnapshot, 'balancing' | 'minReady' | 'generation' | 'leader'>,
): ClusterSnapshot {
  return {
    ...about,
    ports: [],
    desired: workers.length,
    ready: workers.filter(({ state }) => state === 'ready').length,
    degraded: 0,
    reloads: { completed: 0, aborted: 0, reverted: 0 },
    dismissed: [],
    workers,
    primary: null,
  };
}
