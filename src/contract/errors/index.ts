export {
  ClusterConfigurationError,
  ClusterError,
  ClusterRefusedError,
  ClusterUnreachableError,
  NoClusterError,
  InspectionError,
  type InspectionFailure,
  NoPrimaryError,
  NotMeasuredError,
  UncloneableValueError,
  WorkersFailedError,
} from './cluster.errors.js';
export { AddressUnavailableError, isAddressErrorCode } from './address.errors.js';
export { OnceAMinute } from './once-a-minute.js';
export { clean, oneLine } from './one-line.js';
export { messageOf } from './thrown.js';
