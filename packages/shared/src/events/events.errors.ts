import { ClusterError } from 'nestjs-cluster/bootstrap';

/** A request to another worker has failed, or was not answered in time. */
export class ClusterRequestError extends ClusterError {
  readonly code = 'CLUSTER_REQUEST';
  readonly exitCode = 1;

  constructor(name: string, why: string) {
    super(`the request '${name}' to another worker failed: ${why}`);
  }
}
