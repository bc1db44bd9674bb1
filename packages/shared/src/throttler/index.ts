export {
  ClusterThrottlerStorage,
  type ClusterThrottlerOptions,
} from './cluster-throttler-storage.js';
