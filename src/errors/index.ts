export { ClusterError } from './cluster.error.js';
export { ClusterUnreachableError } from './cluster-unreachable.errors.js';
export { ClusterConfigurationError } from './configuration.errors.js';
export { AddressUnavailableError, isAddressErrorCode } from './address.errors.js';
export { NotMeasuredError } from './not-measured.errors.js';
export { NoPrimaryError } from './primary.errors.js';
export { WorkersFailedError } from './worker.errors.js';
export { UncloneableValueError } from './uncloneable.errors.js';
export { clean, oneLine } from './one-line.js';
