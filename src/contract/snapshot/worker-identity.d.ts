/** Identifies a worker. Slots and generations are stable; the system may reuse a pid. */
export interface WorkerIdentity {
    /** Number of the worker's slot, 0..N-1. A restarted worker has the same slot. */
    readonly slot: number;
    readonly pid: number;
    /** Number of rolling reloads before this worker was forked. */
    readonly generation: number;
}
/** The name of a worker in every log line and message: `worker=0 gen=2 pid=4242`. */
export declare function formatIdentity(worker: WorkerIdentity): string;
