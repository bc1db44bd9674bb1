export interface Stat {
  /** The name of the metric, without `nestjs_cluster_`. The primary's metric has `primary_` instead of `worker_`. */
  readonly metric: string;
  /** A counter only increases, and includes the counts of the slot's ended workers. Default: a gauge. */
  readonly isCounter?: true;
  readonly help: string;
  /** Whether the primary measures it too. */
  readonly anyProcess?: true;
  /** Whether `/health` shows it for each worker. */
  readonly inHealth?: true;
}

/**
 * The measurements that a worker takes of itself. The snapshot, the messages to the primary,
 * `/health` and `/metrics` are generated from this table. A new measurement needs a row here and a
 * value in `ProcessMeter` or `ProcessLink.stats()`. A name that ends in `Ms` is shown in seconds.
 */
export const STATS = {
  residentMemoryBytes: {
    metric: 'worker_resident_memory_bytes',
    help: 'Resident memory of the process',
    anyProcess: true,
    inHealth: true,
  },
  heapUsedBytes: {
    metric: 'worker_heap_used_bytes',
    help: 'JavaScript heap in use by the process',
    anyProcess: true,
    inHealth: true,
  },
  eventLoopUtilization: {
    metric: 'worker_event_loop_utilization_ratio',
    help: 'Share of the last heartbeat interval in which the event loop was busy, 0 to 1',
    anyProcess: true,
    inHealth: true,
  },
  eventLoopDelayP99Ms: {
    metric: 'worker_event_loop_delay_p99_seconds',
    help: '99th percentile of the event loop delay over the last heartbeat interval',
    anyProcess: true,
    inHealth: true,
  },
  cpuSecondsTotal: {
    metric: 'worker_cpu_seconds_total',
    isCounter: true,
    help: 'User and system CPU time of all threads',
    anyProcess: true,
  },
  gcSecondsTotal: {
    metric: 'worker_gc_seconds_total',
    isCounter: true,
    help: 'Time spent in garbage collection',
    anyProcess: true,
  },
  threadUtilization: {
    metric: 'worker_thread_utilization_ratio',
    help: 'Share of the last heartbeat interval in which the threads ran @CpuBound() calls, 0 to 1',
  },
  openConnections: {
    metric: 'worker_open_connections',
    help: 'Open connections of the worker',
    inHealth: true,
  },
  requestsInFlight: {
    metric: 'worker_requests_in_flight',
    help: 'Requests in flight',
    inHealth: true,
  },
  requestsTotal: {
    metric: 'worker_requests_total',
    isCounter: true,
    help: 'Responses finished by the worker',
    inHealth: true,
  },
  rebalancedConnectionsTotal: {
    metric: 'rebalanced_connections_total',
    isCounter: true,
    help: 'Connections closed to rebalance, so that their clients reconnect',
  },
  logLinesDroppedTotal: {
    metric: 'log_lines_dropped_total',
    isCounter: true,
    help: 'Lines that could not be written to standard output or standard error',
    anyProcess: true,
  },
  droppedConnectionsTotal: {
    metric: 'worker_dropped_connections_total',
    isCounter: true,
    help: 'Connections rejected because the worker reached its limit of open files',
  },
} as const satisfies Readonly<Record<string, Stat>>;

type Table = typeof STATS;
export type StatName = keyof Table;
type Named<Property> = { [K in StatName]: Table[K] extends Property ? K : never }[StatName];

/** The measurements that a worker takes of itself. */
export type WorkerStats = { readonly [K in StatName]: number };
/** The measurements that every process takes of itself. */
export type ProcessStats = Pick<WorkerStats, Named<{ anyProcess: true }>>;

/** The counts that a slot adds up over all its workers, past and present. */
export type CounterName = Named<{ isCounter: true }>;

export const STAT_NAMES = Object.keys(STATS) as readonly StatName[];

export const COUNTERS = namesOf<CounterName>(({ isCounter }) => isCounter === true);
export const GAUGES = namesOf<Exclude<StatName, CounterName>>((stat) => stat.isCounter !== true);
export const OF_ANY_PROCESS = namesOf<keyof ProcessStats>(({ anyProcess }) => anyProcess === true);
export const IN_HEALTH = namesOf<Named<{ inHealth: true }>>(({ inHealth }) => inHealth === true);

function namesOf<Name extends StatName>(is: (stat: Stat) => boolean): readonly Name[] {
  return STAT_NAMES.filter((name) => is(STATS[name])) as Name[];
}

export function pick<T, K extends keyof T>(from: T, names: readonly K[]): Pick<T, K> {
  return Object.fromEntries(names.map((name) => [name, from[name]])) as Pick<T, K>;
}
