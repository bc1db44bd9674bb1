export { ClusterModule } from './module/cluster.module.js';
export type { ClusterModuleAsyncOptions } from './module/module-options.provider.js';
export { OnClusterEvent } from './module/cluster-event.decorator.js';
export { Priority } from './module/priority.decorator.js';
export { ClusterLogger } from './module/cluster.logger.js';
export { ClusterService } from './module/cluster.service.js';
export { ClusterHealthIndicator } from './observe/health/cluster.health.js';
export { EventLoopHealthIndicator } from './observe/health/event-loop.health.js';
export { OffloadHealthIndicator } from './observe/health/offload.health.js';
export {
  carryContext,
  type ContextStorage,
  CpuBound,
  move,
  TaskAbortedException,
  TaskRejectedException,
  type TaskRejection,
  TaskTimeoutException,
  ThreadLostException,
} from './offload/index.js';
export type {
  ClusterModuleOptions,
  ClusterModuleOptionsFactory,
  CpuBoundOptions,
  HealthIndicatorEntry,
  HealthIndicatorReport,
  HealthOptions,
  MetricsOptions,
  MinReady,
  OffloadOptions,
} from './contract/options/module.js';
export { bootstrap } from './bootstrap/bootstrap.js';
export { workerIdentity } from './bootstrap/roles/own-identity.js';
export type {
  AppFactory,
  AppOf,
  AppSource,
  BystanderRuntime,
  ClusterRuntime,
  CreateApp,
  CreateAppContext,
  CreateAppModule,
  PrimaryRuntime,
  StandaloneRuntime,
  WorkerRuntime,
} from './bootstrap/cluster-runtime.interface.js';
export type {
  AdminOptions,
  BalancingStrategy,
  ClusterOptions,
  ControlOptions,
  ElasticWorkers,
  DoctorOptions,
  FindingName,
  HeartbeatOptions,
  LimitOptions,
  LogFormat,
  LogLevel,
  LogOptions,
  MemoryOptions,
  RecycleOptions,
  ReloadOptions,
  RestartOptions,
  ShutdownOptions,
  WatchdogOptions,
} from './contract/options/index.js';
export type {
  ClusterEventListeners,
  ClusterEventName,
  ClusterEventMap,
} from './contract/events/index.js';
export type {
  ClusterSnapshot,
  FailureCause,
  PrimaryStats,
  ProcessStats,
  ReloadOutcome,
  ReloadResult,
  ReplaceCause,
  RestartResult,
  RetireCause,
  SlotCounts,
  WorkerExit,
  WorkerIdentity,
  WorkerSnapshot,
  WorkerState,
  WorkerStats,
} from './contract/snapshot/index.js';
export type { BlockedRequest, BlockReport, ErrorReport } from './contract/ipc/index.js';
export {
  ClusterConfigurationError,
  ClusterError,
  ClusterAddressError,
  ClusterNoPrimaryError,
  ClusterUncloneableError,
  ClusterWorkersFailedError,
} from './contract/errors/index.js';
export type { RequestPriority } from './contract/options/choices.js';
