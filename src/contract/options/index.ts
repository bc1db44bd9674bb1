export { BALANCING_STRATEGIES } from './choices.js';
export type * from './cluster-options.interface.js';
export type { BalancingStrategy } from './choices.js';
export type * from './resolved-options.interface.js';
export {
  type WarningOptions,
  FINDING_NAMES,
  type FindingName,
  silencedBy,
} from './warning-options.interface.js';
export type * from './log-options.interface.js';
export { LOG_LEVELS } from './log-options.interface.js';
export { COMMON_JS } from './common-js.js';
export {
  availableCores,
  availableWorkers,
  MEMORY_OF_PRIMARY_BYTES,
} from './check/available-workers.js';
export { type CgroupLimits, memoryBytes, readCgroupLimits, readOomKills } from './check/cgroup.js';
export { ADMIN_TOKEN_VARIABLE } from './check/environment.js';
export { checkEventName } from './event-listeners.js';
export { MAX_TIMER_MS, MAX_WORKERS, show } from './check/validate.js';
export { MAX_PORT, MAX_PROFILE_SECONDS } from './check/options.schema.js';
export {
  checkSlot,
  checkWorkerCount,
  logFormatIn,
  resolveOptions,
} from './check/resolve-options.js';
