export {
  ClusterConfigurationError,
  ClusterError,
  InspectionError,
  type InspectionFailure,
  ClusterNoPrimaryError,
  ClusterUncloneableError,
  ClusterWorkersFailedError,
} from './cluster.errors.js';
export { ClusterAddressError, isAddressErrorCode } from './address.errors.js';
export { OnceAMinute } from './once-a-minute.js';
export { clean, oneLine } from './one-line.js';
export { inspected, messageOf } from './thrown.js';
