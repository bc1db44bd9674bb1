export {
  ClusterConfigurationError,
  ClusterError,
  ClusterRefusedError,
  ClusterUnreachableError,
  NoClusterError,
  NoPrimaryError,
  NotMeasuredError,
  UncloneableValueError,
  WorkersFailedError,
} from './cluster.errors.js';
export { AddressUnavailableError, isAddressErrorCode } from './address.errors.js';
export { clean, oneLine } from './one-line.js';
