export * from './worker-identity.js';
export * from './causes.js';
export type * from './cluster-snapshot.js';
export * from './collected-metrics.js';
export * from './scrape-deadlines.js';
export * from './cluster-link.js';
export type * from './inspection.js';
