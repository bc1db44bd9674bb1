export { ClusterModule } from './cluster.module.js';
export type { ClusterModuleAsyncOptions } from './module-options.provider.js';
export { OnClusterEvent } from './cluster-event.decorator.js';
export { ClusterLogger } from './cluster.logger.js';
export { ClusterService } from './cluster.service.js';
export { ClusterHealthIndicator } from './health/cluster.health.js';
export { EventLoopHealthIndicator } from './health/event-loop.health.js';
export { OffloadHealthIndicator } from './health/offload.health.js';
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
} from './options/module.js';
export { bootstrap } from './bootstrap/bootstrap.js';
export { workerIdentity } from './bootstrap/own-identity.js';
export type {
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
  DoctorOptions,
  FindingName,
  HangOptions,
  HeartbeatOptions,
  LogFormat,
  LogLevel,
  LogOptions,
  MemoryOptions,
  RecycleOptions,
  ReloadOptions,
  RestartOptions,
  ShutdownOptions,
} from './options/index.js';
export type { ClusterEventListeners, ClusterEventName, ClusterEvents } from './events/index.js';
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
} from './snapshot/index.js';
export type { BlockedRequest, BlockReport, ErrorReport } from './ipc/index.js';
export {
  ClusterConfigurationError,
  ClusterError,
  AddressUnavailableError,
  NoPrimaryError,
  UncloneableValueError,
  WorkersFailedError,
} from './errors/index.js';
