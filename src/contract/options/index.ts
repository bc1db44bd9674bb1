export * from './bootstrap.js';
export * from './log.js';
export * from './resolve.js';
export { checkSlot, checkWorkerCount } from './schema.js';
