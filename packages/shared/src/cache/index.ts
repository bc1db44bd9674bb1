export { ClusterSharedError } from '../errors.js';
export { type CacheTtl, CLUSTER_CACHE_OPTIONS, ClusterCache } from './cluster-cache.js';
export { clusterCache, type ClusterCacheStore } from './cluster-cache-store.js';
export type { ClusterCacheOptions } from './shared-cache.js';
