/** Which worker this is. Slots and generations are stable names; a pid is reused. */
export interface WorkerIdentity {
  /** Numbered place of the worker, 0..N-1, kept across restarts. */
  readonly slot: number;
  readonly pid: number;
  /** Number of rolling reloads before this worker was forked. */
  readonly generation: number;
}

/** How every log line and message names a worker: `worker=0 gen=2 pid=4242`. */
export function formatIdentity(worker: WorkerIdentity): string {
  return `worker=${worker.slot} gen=${worker.generation} pid=${worker.pid}`;
}
