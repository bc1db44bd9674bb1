import { ClusterError } from './cluster.error.js';

/**
 * An option or an environment variable cannot be used as it is. Thrown before
 * any process is forked; the process exits with 78 (`EX_CONFIG`).
 */
export class ClusterConfigurationError extends ClusterError {
  /** For an error that crossed a process boundary: its class is gone, its code is not. */
  static readonly code = 'CLUSTER_CONFIGURATION';
  readonly code = ClusterConfigurationError.code;
  readonly exitCode = 78;
}
