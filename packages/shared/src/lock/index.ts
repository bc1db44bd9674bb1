export { ClusterLockTimeoutError, ClusterSharedError } from '../errors.js';
export { type AcquiredLock, ClusterLock, type RunExclusiveOptions } from './cluster-lock.js';
