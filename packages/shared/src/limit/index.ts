export { ClusterLimit, type ClusterLimitOptions, type LimitedResponse } from './cluster-limit.js';
export { ClusterLimitException } from './limit.errors.js';
