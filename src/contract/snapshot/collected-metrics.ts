import type { ClusterSnapshot } from './cluster-snapshot.js';

/** The limit of one process's serialised metrics. Only an app out of control has more, and the primary does not keep them. */
export const MAX_METRICS_BODY_LENGTH = 16 * 1024 * 1024;

/** Several such bodies as one: they have most series in common. */
export const MAX_FOLDED_BODY_LENGTH = 4 * MAX_METRICS_BODY_LENGTH;

/** Metrics of one worker as the worker itself serialised them. */
export interface WorkerMetrics {
  readonly slot: number;
  /** Time since the worker serialised them. */
  readonly ageMs: number;
  readonly body: string;
}

/** The metrics of the whole cluster, which the process that renders the page merges. */
export interface CollectedMetrics {
  readonly snapshot: ClusterSnapshot;
  readonly workers: readonly WorkerMetrics[];
  /** Metrics of ended workers. */
  readonly retired: readonly string[];
  /** Age of the snapshot. It is set if the primary did not answer, so that the metrics of the workers are unknown. */
  readonly snapshotAgeMs?: number | undefined;
}
