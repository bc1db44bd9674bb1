export { type CacheTtl, CLUSTER_CACHE_OPTIONS, ClusterCache } from './cluster-cache.js';
export { clusterCache, type ClusterCacheStore } from './cluster-cache-store.js';
export { ClusterCacheReentryError, ClusterCacheUnconfirmedError } from './cache.errors.js';
export type { ClusterCacheOptions } from './cache-options.js';
