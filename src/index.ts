export { ClusterModule } from './module/cluster.module.js';
export type { ClusterModuleAsyncOptions } from './module/async-options.js';
export { OnClusterEvent } from './module/on-cluster-event.js';
export { ClusterLogger } from './module/cluster.logger.js';
export { ClusterService } from './module/cluster.service.js';
export {
  ClusterHealthIndicator,
  EventLoopHealthIndicator,
  OffloadHealthIndicator,
} from './observe/health/indicators.js';
export { CpuBound } from './offload/cpu-bound.decorator.js';
export {
  TaskAbortedException,
  TaskRejectedException,
  type TaskRejection,
  TaskTimeoutException,
  ThreadLostException,
} from './offload/offload.exceptions.js';
export type {
  ClusterModuleOptions,
  ClusterModuleOptionsFactory,
  HealthIndicatorEntry,
  HealthIndicatorReport,
  HealthOptions,
  MetricsOptions,
  MinReady,
  OffloadOptions,
} from './contract/options/module.js';
export type { CpuBoundOptions } from './contract/options/cpu-bound.js';
export * from './bootstrap/index.js';
export { ClusterUncloneableError } from './contract/errors/errors.js';
