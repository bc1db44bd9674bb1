/**
 * Every name that `nestjs-cluster/bootstrap` exports. Adding one is a promise
 * to keep it, taking one away breaks somebody's build: change this list on
 * purpose.
 */
export const BOOTSTRAP_NAMES = {
  values: [
    'ClusterAddressError',
    'ClusterConfigurationError',
    'ClusterError',
    'ClusterNoPrimaryError',
    'ClusterWorkersFailedError',
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
    'ClusterEventListeners',
    'ClusterEventMap',
    'ClusterEventName',
    'ClusterOptions',
    'ClusterRuntime',
    'ClusterSnapshot',
    'ControlOptions',
    'CreateApp',
    'CreateAppContext',
    'CreateAppModule',
    'DoctorOptions',
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
    'RestartResult',
    'RetireCause',
    'ShutdownOptions',
    'SlotCounts',
    'StandaloneRuntime',
    'WatchdogOptions',
    'WorkerExit',
    'WorkerIdentity',
    'WorkerRuntime',
    'WorkerSnapshot',
    'WorkerState',
    'WorkerStats',
  ],
} as const;

/** Every name that `nestjs-cluster/bullmq` exports. */
export const BULLMQ_NAMES = {
  values: ['ClusterQueueHealthIndicator', 'ClusterQueueModule', 'ClusterQueues'],
  types: ['ClusterQueueAsyncOptions', 'ClusterQueueOptions', 'EnqueueOptions', 'QueuedJob'],
} as const;

/** Every name that `nestjs-cluster/schedule` exports. */
export const SCHEDULE_NAMES = {
  values: ['ClusterScheduleModule', 'EveryWorker'],
  types: [],
} as const;

/** Every name that `nestjs-cluster/testing` exports. */
export const TESTING_NAMES = {
  values: ['ClusterTestingModule'],
  types: ['FakeCluster'],
} as const;

/** Every name that `nestjs-cluster/lock` exports. */
export const LOCK_NAMES = {
  values: [
    'ClusterLock',
    'ClusterLockReentryError',
    'ClusterLockRefusedError',
    'ClusterLockTimeoutError',
  ],
  types: ['AcquiredLock', 'RunExclusiveOptions'],
} as const;

/** Every name that `nestjs-cluster/throttler` exports. */
export const THROTTLER_NAMES = {
  values: ['ClusterThrottlerStorage'],
  types: ['ClusterThrottlerOptions'],
} as const;

/** Every name that `nestjs-cluster/cache` exports. */
export const CACHE_NAMES = {
  values: [
    'CLUSTER_CACHE_OPTIONS',
    'ClusterCache',
    'ClusterCacheReentryError',
    'ClusterCacheUnconfirmedError',
    'clusterCache',
  ],
  types: ['CacheTtl', 'ClusterCacheOptions', 'ClusterCacheStore'],
} as const;

/** Every name that `nestjs-cluster/events` exports. */
export const EVENTS_NAMES = {
  values: ['ClusterEvents', 'ClusterPubSub', 'ClusterRequestError'],
  types: ['ClusterRequestOptions', 'EventReceivers'],
} as const;

/** Every name that `nestjs-cluster/socket.io` exports. */
export const SOCKET_IO_NAMES = {
  values: ['ClusterIoAdapter'],
  types: ['ClusterIoAdapterOptions'],
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
    'OnClusterEvent',
    'TaskAbortedException',
    'TaskRejectedException',
    'TaskTimeoutException',
    'ThreadLostException',
    'ClusterUncloneableError',
    'carryContext',
    'move',
  ].sort(),
  types: [
    ...BOOTSTRAP_NAMES.types,
    'ClusterModuleAsyncOptions',
    'ClusterModuleOptions',
    'ClusterModuleOptionsFactory',
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
