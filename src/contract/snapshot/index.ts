export * from './worker-identity.js';
export * from './causes.js';
export type * from '../stats.js';
export type * from './cluster-snapshot.js';
export * from './collected-metrics.js';
export type * from './cluster-link.js';
export type * from './prometheus.js';
export { CLUSTER_LINK } from './current-link.js';
export type * from './inspection.js';
