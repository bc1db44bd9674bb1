export { type CacheTtl, CLUSTER_CACHE_OPTIONS, ClusterCache } from './cluster-cache.js';
export { clusterCache, type ClusterCacheStore } from './cluster-cache-store.js';
export {
  ClusterCacheReentryError,
  ClusterCacheUnconfirmedError,
} from '../client/cache/cache.errors.js';
export type { ClusterCacheOptions } from '../client/cache/cache-options.js';
