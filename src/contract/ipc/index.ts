export * from './block-report.js';
export * from './close-handle.js';
export * from './envelope.js';
export * from './error-report.js';
export * from './fingerprint.js';
export * from './passed-connection.js';
export * from './primary-message.js';
export * from './worker-message.js';
