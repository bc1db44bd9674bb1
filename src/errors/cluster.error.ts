/**
 * Base of every error this package throws or reports.
 *
 * Its message has three parts: what happened, the value that was seen, and
 * what to do about it. `cause` keeps the error underneath, where there is one.
 */
export abstract class ClusterError extends Error {
  /** Stable, machine-readable name of the cause: `CLUSTER_…`. */
  abstract readonly code: string;
  /** Status the process exits with when this error ends it (sysexits.h). */
  abstract readonly exitCode: number;

  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
  }
}
