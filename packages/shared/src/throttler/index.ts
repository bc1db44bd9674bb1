export { ClusterThrottlerStorage } from './cluster-throttler-storage.js';
