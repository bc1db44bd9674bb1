export * from './bootstrap.js';
export { COMMON_JS } from './common-js.js';
export * from './log.js';
export * from './resolve.js';
export { MAX_PORT, MAX_TIMER_MS, MAX_WORKERS, show } from './schema.js';
