export type * from './block-report.js';
export * from './envelope.js';
export * from './error-report.js';
export type * from './primary-message.js';
export * from './worker-message.js';
