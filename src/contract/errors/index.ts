export {
  ClusterAddressError,
  ClusterConfigurationError,
  ClusterError,
  InspectionError,
  type InspectionFailure,
  isAddressErrorCode,
  ClusterNoPrimaryError,
  ClusterUncloneableError,
  ClusterWorkersFailedError,
} from './cluster.errors.js';
export { OnceAMinute, onceEach } from './rarely.js';
export { clean, inspected, messageOf, oneLine } from './text.js';
