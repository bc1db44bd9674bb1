import type { ClusterSnapshot } from './cluster-snapshot.js';
/** Maximum length of one process's serialised metrics. The primary does not keep longer metrics. */
export declare const MAX_METRICS_BODY_LENGTH: number;
/** Maximum length of several merged bodies. They share most series, so four times one body is enough. */
export declare const MAX_FOLDED_BODY_LENGTH: number;
/** Metrics of one worker as the worker itself serialised them. */
export interface WorkerMetrics {
    readonly slot: number;
    /** Time since the worker serialised the metrics, in ms. */
    readonly ageMs: number;
    readonly body: string;
}
/** The metrics of the whole cluster, which the process that renders the page merges. */
export interface CollectedMetrics {
    readonly snapshot: ClusterSnapshot;
    readonly workers: readonly WorkerMetrics[];
    /** Serialised metrics of ended workers. */
    readonly retired: readonly string[];
    /** Age of the snapshot in ms. Set only if the primary did not answer and the workers' metrics are unknown. */
    readonly snapshotAgeMs?: number | undefined;
}
