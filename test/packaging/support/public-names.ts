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
    'workerIdentity',
  ],
  types: [
    'AdminOptions',
    'AppOf',
    'AppSource',
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
    'CreateAppContext',
<<<<<<< HEAD
    'DoctorOptions',
=======
    'CreateAppModule',
>>>>>>> 7f78c23 (feat(bootstrap): an app without an HTTP server is a worker)
    'ErrorReport',
    'FailureCause',
    'FindingName',
    'HeartbeatOptions',
    'LogFormat',
    'LogLevel',
    'LogOptions',
    'MemoryOptions',
    'PrimaryRuntime',
    'PrimaryStats',
    'ProcessStats',
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

/** Every name that `nestjs-cluster/testing` exports. */
export const TESTING_NAMES = {
  values: ['ClusterTestingModule'],
  types: ['FakeCluster'],
} as const;

/** Every name that `nestjs-cluster` exports: those above, and what needs Nest. */
export const PACKAGE_NAMES = {
  values: [
    ...BOOTSTRAP_NAMES.values,
    'ClusterHealthIndicator',
    'ClusterLogger',
    'ClusterModule',
    'ClusterService',
    'CpuBound',
    'EventLoopHealthIndicator',
    'OffloadHealthIndicator',
    'TaskAbortedException',
    'TaskRejectedException',
    'TaskTimeoutException',
    'ThreadLostException',
    'UncloneableValueError',
    'carryContext',
    'move',
  ].sort(),
  types: [
    ...BOOTSTRAP_NAMES.types,
    'ClusterModuleAsyncOptions',
    'ClusterModuleOptions',
    'ContextStorage',
    'CpuBoundOptions',
    'HealthIndicatorEntry',
    'HealthIndicatorReport',
    'HealthOptions',
    'MetricsOptions',
    'MinReady',
    'OffloadOptions',
    'TaskRejection',
  ].sort(),
} as const;
