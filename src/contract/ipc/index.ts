export type * from './block-report.js';
export * from './close-handle.js';
export * from './envelope.js';
export * from './error-report.js';
export * from './leave-signal.js';
export type * from './primary-message.js';
export type * from './worker-message.js';
