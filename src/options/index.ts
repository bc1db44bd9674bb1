export type {
  BalancingStrategy,
  ClusterOptions,
  HeartbeatOptions,
  ListenAddress,
  LogFormat,
  ResolvedClusterOptions,
  RestartOptions,
  ShutdownOptions,
} from './cluster-options.interface.js';
export { DEFAULTS } from './defaults.js';
export { MAX_TIMER_MS } from './timer-limit.js';
export { show } from './validate.js';
export { resolveOptions } from './resolve-options.js';
