import { ClusterError } from './cluster.error.js';

/**
 * Workers do not stay up: none has ever become ready, or every slot is in a
 * crash loop. `cause` is the last error a worker reported. Exit code 70
 * (`EX_SOFTWARE`).
 */
export class WorkersFailedError extends ClusterError {
  readonly code = 'CLUSTER_WORKERS_FAILED';
  readonly exitCode = 70;
}
