// The options of the Nest module. They are separate from the options of bootstrap(), so that the
// primary does not load them.
export type * from './module-options.interface.js';
export type { FindingName } from './warning-options.interface.js';
export { hasTerminus, loadTerminus } from './check/load-terminus.js';
export { MODULE_OPTIONS } from './module-options.interface.js';
export { availableCores } from './check/available-workers.js';
export { COMMON_JS } from './common-js.js';
export { resolveCpuBoundOptions, type CpuBoundOptions } from './cpu-bound-options.js';
export { resolveModuleOptions } from './check/resolve-module-options.js';
export { resolveAsyncOptions, resolveLateOptions } from './check/resolve-async-options.js';
