import { ServiceUnavailableException } from '@nestjs/common';
import { ClusterError } from 'nestjs-cluster/bootstrap';

/** The hub is unavailable, refused a request or did not confirm a change, or a value cannot be sent to it. */
export class ClusterSharedError extends ClusterError {
  readonly code = 'CLUSTER_SHARED';
  readonly exitCode = 1;
}

/** The lock was not free in time, so `fn` was not called. */
export class ClusterLockTimeoutError extends ClusterError {
  readonly code = 'CLUSTER_LOCK_TIMEOUT';
  readonly exitCode = 1;

  constructor(name: string, waitMs: number) {
    super(`the lock '${name}' was not free within ${waitMs} ms; raise waitMs or skip this run`);
  }
}

/** A request to another worker failed or was not answered in time. */
export class ClusterRequestError extends ClusterError {
  readonly code = 'CLUSTER_REQUEST';
  readonly exitCode = 1;

  constructor(name: string, why: string) {
    super(`the request '${name}' to another worker failed: ${why}`);
  }
}

/** `ClusterLimit` refused a call with 503, because no place is free or the hub is unavailable. */
export class ClusterLimitException extends ServiceUnavailableException {
  /** The estimated time until a place is free, in seconds. */
  readonly retryAfterSeconds = 1;

  /** @param cause the error of the hub; `undefined` if all places are taken. */
  constructor(
    readonly limit: string,
    readonly key: string,
    cause?: Error,
  ) {
    const why = cause === undefined ? 'was reached' : 'cannot be checked now';
    super(`the limit '${limit}' ${why}; try again later`, { cause });
  }
}
