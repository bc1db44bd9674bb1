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
export { resolveOptions } from './resolve-options.js';
export type {
  ClusterModuleOptions,
  HealthOptions,
  MetricsOptions,
  MinReady,
  ResolvedModuleOptions,
} from './module-options.interface.js';
export { resolveModuleOptions } from './resolve-module-options.js';
export { MODULE_OPTIONS } from './module-options.token.js';
