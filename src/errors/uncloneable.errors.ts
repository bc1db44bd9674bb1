import { ClusterError } from './cluster.error.js';

/**
 * An argument or a result of a `@CpuBound()` method cannot be copied between
 * threads by structured clone. The message names the parameter and, where it
 * can be told, what in it is the obstacle.
 */
export class UncloneableValueError extends ClusterError {
  readonly code = 'CLUSTER_UNCLONEABLE_VALUE';
  readonly exitCode = 1;
}
