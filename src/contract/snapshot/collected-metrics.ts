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

/*
 * The deadlines of a scrape, each inside the one before it:
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
