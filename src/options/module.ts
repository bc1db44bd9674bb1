// The options of the Nest module: apart from those of bootstrap(), so that the primary does not load them.
export type {
  ClusterModuleOptions,
  HealthOptions,
  MetricsOptions,
  MinReady,
  ResolvedModuleOptions,
} from './module-options.interface.js';
export { MODULE_OPTIONS } from './module-options.token.js';
export { resolveModuleOptions } from './resolve-module-options.js';
