import { ClusterError } from './cluster.error.js';

/** A running cluster was asked for something and did not answer. Exit code 69 (`EX_UNAVAILABLE`). */
export class ClusterUnreachableError extends ClusterError {
  readonly code = 'CLUSTER_UNREACHABLE';
  readonly exitCode = 69;

  constructor(url: string, why: string) {
    super(`cannot ask the cluster at ${url}: ${why}`);
  }
}
