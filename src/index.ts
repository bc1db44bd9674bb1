export { ClusterModule, type ClusterModuleAsyncOptions } from './cluster.module.js';
export { ClusterService } from './cluster.service.js';
export { ClusterHealthIndicator } from './health/cluster.health.js';
export { EventLoopHealthIndicator } from './health/event-loop.health.js';
export { OffloadHealthIndicator } from './health/offload.health.js';
export type {
  ClusterModuleOptions,
  HealthOptions,
  MetricsOptions,
  MinReady,
} from './options/module.js';
export * from './bootstrap/index.js';
