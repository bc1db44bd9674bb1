/**
 * Every name that `nestjs-cluster/bootstrap` exports. Adding one is a promise
 * to keep it, taking one away breaks somebody's build: change this list on
 * purpose.
 */
export const BOOTSTRAP_NAMES = {
  values: [
    'AddressUnavailableError',
    'ClusterConfigurationError',
    'ClusterError',
    'NoPrimaryError',
    'WorkersFailedError',
    'bootstrap',
  ],
  types: [
    'BalancingStrategy',
    'BlockReport',
    'BlockedRequest',
    'BystanderRuntime',
    'ClusterEventName',
    'ClusterEvents',
    'ClusterOptions',
    'ClusterRuntime',
    'ClusterSnapshot',
    'CreateApp',
    'ErrorReport',
    'FailureCause',
    'HeartbeatOptions',
    'MemoryOptions',
    'PrimaryRuntime',
    'RecycleOptions',
    'ReloadOptions',
    'ReloadOutcome',
    'ReloadResult',
    'ReplaceCause',
    'RestartOptions',
    'RetireCause',
    'ShutdownOptions',
    'SlotCounts',
    'StandaloneRuntime',
    'WorkerExit',
    'WorkerIdentity',
    'WorkerRuntime',
    'WorkerSnapshot',
    'WorkerState',
    'WorkerStats',
  ],
} as const;

/** Every name that `nestjs-cluster` exports: those above, and what needs Nest. */
export const PACKAGE_NAMES = {
  values: [
    ...BOOTSTRAP_NAMES.values,
    'ClusterHealthIndicator',
    'ClusterModule',
    'ClusterService',
    'EventLoopHealthIndicator',
    'OffloadHealthIndicator',
  ].sort(),
  types: [
    ...BOOTSTRAP_NAMES.types,
    'ClusterModuleAsyncOptions',
    'ClusterModuleOptions',
    'HealthOptions',
    'MetricsOptions',
    'MinReady',
  ].sort(),
} as const;
