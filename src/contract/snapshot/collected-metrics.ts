import type { ClusterSnapshot } from './cluster-snapshot.js';

/** Serialised metrics of one process larger than this are an app out of control; the primary keeps none of it. */
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

/** What the whole cluster has measured, to be merged by the process that makes a page of it. */
export interface CollectedMetrics {
  readonly snapshot: ClusterSnapshot;
  readonly workers: readonly WorkerMetrics[];
  /** Bodies of workers that are gone. */
  readonly retired: readonly string[];
  /**
   * Age of the snapshot. It is set where the primary did not answer, so that nothing is known of
   * what the workers have counted.
   */
  readonly snapshotAgeMs?: number | undefined;
}
