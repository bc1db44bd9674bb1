import { ClusterError } from 'nestjs-cluster/bootstrap';

/** Shared state cannot be used as the caller asked. The message says why, and what to do. */
export class ClusterSharedError extends ClusterError {
  readonly code = 'CLUSTER_SHARED';
  readonly exitCode = 1;
}
