export * from './worker-identity.js';
export * from './cluster-snapshot.js';
export * from './collected-metrics.js';
export * from './scrape-deadlines.js';
export * from './cluster-link.js';
export * from './cluster-link.token.js';
export * from './leader-role.js';
export * from './inspection.js';
