export { ClusterLimitException } from '../errors.js';
export { ClusterLimit, type ClusterLimitOptions, type LimitedResponse } from './cluster-limit.js';
