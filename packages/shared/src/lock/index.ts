export { type AcquiredLock, ClusterLock, type RunExclusiveOptions } from './cluster-lock.js';
export {
  ClusterLockReentryError,
  ClusterLockRefusedError,
  ClusterLockTimeoutError,
} from './lock.errors.js';
