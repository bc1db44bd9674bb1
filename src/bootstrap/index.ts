export { bootstrap } from './bootstrap.js';
export { workerIdentity } from './roles/role.js';
export type * from './cluster-runtime.interface.js';
export type {
  AdminOptions,
  BalancingStrategy,
  ClusterOptions,
  ControlOptions,
  WarningOptions,
  FindingName,
  LogFormat,
  LogLevel,
  LogOptions,
  MemoryOptions,
  RecycleOptions,
  ReloadOptions,
  ShutdownOptions,
} from '../contract/options/resolve.js';
export type {
  ClusterEventListeners,
  ClusterEventName,
  ClusterEventMap,
} from '../contract/log/events.js';
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
} from '../contract/snapshot/types.js';
export type { ErrorReport } from '../contract/errors/error-report.js';
export type { BlockedRequest, BlockReport } from '../contract/messages.js';
export {
  ClusterConfigurationError,
  ClusterError,
  ClusterAddressError,
  ClusterNoPrimaryError,
  ClusterWorkersFailedError,
} from '../contract/errors/errors.js';
