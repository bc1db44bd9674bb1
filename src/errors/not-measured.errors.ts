import { ClusterError } from './cluster.error.js';

/** An app does not start, or does not answer as it has to in order to be measured. Exit code 70 (`EX_SOFTWARE`). */
export class NotMeasuredError extends ClusterError {
  readonly code = 'CLUSTER_NOT_MEASURED';
  readonly exitCode = 70;
}
