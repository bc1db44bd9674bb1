import type { WorkerIdentity } from '../snapshot/index.js';

/** Where a worker comes from. */
export interface Assignment {
  readonly identity: WorkerIdentity;
  /** Workers there were to be when it was forked. */
  readonly workers: number;
  readonly primaryPid: number;
  /** Descriptor on which the watchdog reports. */
  readonly reportTo: number | undefined;
  /** Whether it prints an error that keeps it from coming up. */
  readonly printsBootError: boolean;
}
