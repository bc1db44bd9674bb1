import { ClusterError } from 'nestjs-cluster/bootstrap';

/** The lock was not free in time, so `fn` was not called. */
export class ClusterLockTimeoutError extends ClusterError {
  readonly code = 'CLUSTER_LOCK_TIMEOUT';
  readonly exitCode = 1;

  constructor(name: string, waitMs: number) {
    super(
      `the lock '${name}' was not free within ${waitMs} ms; raise waitMs, or do without this run`,
    );
  }
}

/** `runExclusive()` was called inside itself for the same name, so it would wait for itself. */
export class ClusterLockReentryError extends ClusterError {
  readonly code = 'CLUSTER_LOCK_REENTRY';
  readonly exitCode = 1;

  constructor(name: string) {
    super(
      `runExclusive('${name}') was called inside runExclusive('${name}'), and would wait for itself; call it once, outside`,
    );
  }
}

/** The lock cannot be requested, because the hub refuses the request or cannot be started. */
export class ClusterLockRefusedError extends ClusterError {
  readonly code = 'CLUSTER_LOCK_REFUSED';
  readonly exitCode = 1;

  constructor(name: string, why: string) {
    super(`the lock '${name}' cannot be asked for: ${why}`);
  }
}
