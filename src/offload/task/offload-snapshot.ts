/** The state of `@CpuBound()` calls in this process. */
export interface OffloadSnapshot {
  /** Number of threads; 0 if nothing is offloaded or all calls run inline. */
  readonly threads: number;
  /** Number of running calls. */
  readonly running: number;
  /** Number of waiting calls. */
  readonly queueSize: number;
  /** How long the queue has been full, in ms. */
  readonly fullForMs: number;
  /** Whether no thread can run the tasks. */
  readonly unavailable: boolean;
}

/** The snapshot of an app that offloads nothing. */
export const IDLE: OffloadSnapshot = {
  threads: 0,
  running: 0,
  queueSize: 0,
  fullForMs: 0,
  unavailable: false,
};
