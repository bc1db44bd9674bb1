import { ClusterError } from 'nestjs-cluster/bootstrap';

/**
 * An app could not be examined or measured: it does not start, or its answers do not fit the
 * measurement. Exit code 70 (`EX_SOFTWARE`).
 */
export class NotMeasuredError extends ClusterError {
  readonly code = 'CLUSTER_NOT_MEASURED';
  readonly exitCode = 70;
}
