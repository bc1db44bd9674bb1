/**
 * Base class of every error that this package throws or reports.
 *
 * Its message has three parts: what happened, the value that was seen, and what to do about it.
 * `cause` keeps the underlying error, if there is one.
 */
export abstract class ClusterError extends Error {
  /** Stable, machine-readable name of the cause: `CLUSTER_…`. */
  abstract readonly code: string;
  /** Exit code of the process if this error ends it (sysexits.h). */
  abstract readonly exitCode: number;

  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
  }
}

/**
 * An option or an environment variable has a wrong value. Thrown before any process is forked; the
 * process exits with 78 (`EX_CONFIG`).
 */
export class ClusterConfigurationError extends ClusterError {
  /** Identifies the error after it has crossed a process boundary, where its class is lost. */
  static readonly code = 'CLUSTER_CONFIGURATION';
  readonly code = ClusterConfigurationError.code;
  readonly exitCode = 78;
}

/** The call needs a primary, and this process has none. */
export class ClusterNoPrimaryError extends ClusterError {
  readonly code = 'CLUSTER_NO_PRIMARY';
  readonly exitCode = 1;

  /** @param what the call that needs a primary. */
  constructor(what: string, why: string) {
    super(`${what} needs a primary: ${why}`);
  }
}

/** No worker has ever become ready. `cause` is the last error a worker reported. Exit code 70 (`EX_SOFTWARE`). */
export class ClusterWorkersFailedError extends ClusterError {
  readonly code = 'CLUSTER_WORKERS_FAILED';
  readonly exitCode = 70;
}

/**
 * An argument or a result of a `@CpuBound()` method cannot be copied between threads by structured
 * clone. The message names the parameter and, if known, the part of the value that cannot be copied.
 */
export class ClusterUncloneableError extends ClusterError {
  readonly code = 'CLUSTER_UNCLONEABLE_VALUE';
  readonly exitCode = 1;
}

/** Why a worker could not be inspected. */
export type InspectionFailure =
  | 'no-worker'
  | 'no-watchdog'
  /** The worker is being profiled already. */
  | 'busy'
  /** Neither the worker nor its watchdog answers. */
  | 'silent'
  /** The worker ended during the inspection. */
  | 'ended'
  | 'failed';

/** A stack or a profile of a worker could not be taken. */
export class InspectionError extends ClusterError {
  readonly code = 'CLUSTER_INSPECTION';
  readonly exitCode = 1;

  constructor(
    readonly failure: InspectionFailure,
    message: string,
  ) {
    super(message);
  }
}
