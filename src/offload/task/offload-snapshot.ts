/** What is known of `@CpuBound()` calls in this process. */
export interface OffloadSnapshot {
  /** Threads there are; 0 where nothing is offloaded, or everything runs inline. */
  readonly threads: number;
  /** Calls that run. */
  readonly running: number;
  /** Calls that wait. */
  readonly queueSize: number;
  /** How long no more could wait, in ms. */
  readonly fullForMs: number;
  /** There are tasks, and no thread that could run them. */
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
