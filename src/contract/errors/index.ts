export {
  ClusterConfigurationError,
  ClusterError,
  ClusterRefusedError,
  ClusterUnreachableError,
  NoClusterError,
  InspectionError,
  type InspectionFailure,
  ClusterNoPrimaryError,
  NotMeasuredError,
  ClusterUncloneableError,
  ClusterWorkersFailedError,
} from './cluster.errors.js';
export { ClusterAddressError, isAddressErrorCode } from './address.errors.js';
export { OnceAMinute } from './once-a-minute.js';
export { clean, oneLine } from './one-line.js';
export { inspected } from './inspected.js';
export { messageOf } from './thrown.js';
