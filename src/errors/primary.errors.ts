import { ClusterError } from './cluster.error.js';

/** What was asked for needs a primary, and this process has none. */
export class NoPrimaryError extends ClusterError {
  readonly code = 'CLUSTER_NO_PRIMARY';
  readonly exitCode = 1;

  /** @param what the call that cannot be made. */
  constructor(what: string, why: string) {
    super(`${what} needs a primary: ${why}`);
  }
}
