import type { ClusterSnapshot } from './cluster-snapshot.js';

/** Maximum length of one process's serialised metrics. The primary does not keep longer metrics. */
export const MAX_METRICS_BODY_LENGTH = 16 * 1024 * 1024;

/** Metrics of one worker as the worker itself serialised them. */
export interface WorkerMetrics {
  readonly slot: number;
  readonly generation: number;
  /** Time since the worker serialised the metrics, in ms. */
  readonly ageMs: number;
  readonly body: string;
}

/** The metrics of the whole cluster, which the process that renders the page merges. */
export interface CollectedMetrics {
  readonly snapshot: ClusterSnapshot;
  readonly workers: readonly WorkerMetrics[];
  /** For each slot, what its ended workers have counted. */
  readonly retired: readonly string[];
  /** Age of the snapshot in ms. Set only if the primary did not answer and the workers' metrics are unknown. */
  readonly snapshotAgeMs?: number | undefined;
}
