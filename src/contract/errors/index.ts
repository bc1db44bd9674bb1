export {
  ClusterAddressError,
  ClusterConfigurationError,
  ClusterError,
  isAddressErrorCode,
  ClusterNoPrimaryError,
  ClusterUncloneableError,
  ClusterWorkersFailedError,
  Refusal,
} from './cluster.errors.js';
export { OnceAMinute, onceEach } from './rarely.js';
export { clean, inspected, messageOf, oneLine } from './text.js';
