import {
  type ClusterSnapshot,
  type CollectedMetrics,
  FAILURE_CAUSES,
  type MetricJson,
  type MetricLabels,
  type PrimaryStats,
  RELOAD_OUTCOMES,
  type SlotCounts,
  type WorkerSnapshot,
  type WorkerState,
} from '../../contract/snapshot/index.js';

type Values = readonly (readonly [MetricLabels, number])[];

/** Metrics that are each read from one field. A field whose name ends in `Ms` is shown in seconds. */
type Metrics<T> = readonly (readonly [name: string, field: keyof T & string, help: string])[];
type OfProcess = Pick<PrimaryStats, keyof PrimaryStats & keyof WorkerSnapshot>;

const STATES: readonly WorkerState[] = ['starting', 'ready', 'draining', 'exited'];

/** Names are without the prefixes `nestjs_cluster_worker_` and `nestjs_cluster_primary_`. */
const PROCESS_GAUGES: Metrics<OfProcess> = [
  ['uptime_seconds', 'uptimeSeconds', 'Time since the process was started'],
  ['resident_memory_bytes', 'residentMemoryBytes', 'Resident memory of the process'],
  ['heap_used_bytes', 'heapUsedBytes', 'JavaScript heap in use by the process'],
  [
    'event_loop_utilization_ratio',
    'eventLoopUtilization',
    'Share of the last heartbeat interval that the event loop was busy, 0 to 1',
  ],
  [
    'event_loop_delay_p99_seconds',
    'eventLoopDelayP99Ms',
    '99th percentile of the event loop delay over the last heartbeat interval',
  ],
];

const WORKER_GAUGES: Metrics<WorkerSnapshot> = [
  ...PROCESS_GAUGES,
  ['heartbeat_age_seconds', 'heartbeatAgeMs', "Time since the worker's last sign of life"],
  ['open_connections', 'openConnections', 'Connections open to the worker'],
  ['requests_in_flight', 'requestsInFlight', 'Requests that the worker has begun and not answered'],
];

const PROCESS_COUNTERS: Metrics<Pick<OfProcess, keyof OfProcess & keyof SlotCounts>> = [
  ['cpu_seconds_total', 'cpuSecondsTotal', 'CPU time, user and system, of all threads'],
  ['gc_seconds_total', 'gcSecondsTotal', 'Time spent in garbage collections'],
];

const LOG_LINES_DROPPED = [
  'log_lines_dropped_total',
  'logLinesDroppedTotal',
  'Lines that could not be written to standard output or standard error',
] as const;

/** The counters of each slot. Names are without the prefix `nestjs_cluster_`. */
const SLOT_COUNTERS: Metrics<SlotCounts> = [
  ...PROCESS_COUNTERS.map(([name, ...rest]) => [`worker_${name}`, ...rest] as const),
  LOG_LINES_DROPPED,
  ['worker_requests_total', 'requestsTotal', 'Responses finished by the worker'],
  [
    'worker_aborted_requests_total',
    'abortedRequestsTotal',
    'Requests cut off because a drain reached its deadline',
  ],
  [
    'rebalanced_connections_total',
    'rebalancedConnectionsTotal',
    'Connections closed because their clients were asked to connect again, for the balance',
  ],
  [
    'worker_dropped_connections_total',
    'droppedConnectionsTotal',
    'Connections turned away because the worker had as many as its limit of open files has room for',
  ],
  [
    'ipc_messages_dropped_total',
    'droppedMessagesTotal',
    'Messages of the worker that do not match the protocol',
  ],
];

/** The metrics that describe the cluster itself, computed from its snapshot. */
export function clusterMetrics({
  snapshot,
  workers: reports,
  snapshotAgeMs = 0,
}: Omit<CollectedMetrics, 'retired'>): MetricJson[] {
  const family: MakeFamily = (type, name, help, values) => ({
    name: `nestjs_cluster_${name}`,
    help,
    type,
    aggregator: 'sum',
    values: values.map(([labels, value]) => ({ labels, value })),
  });
  const ages = new Map(reports.map((each) => [each.slot, each.ageMs]));
  return [
    ...wholeCluster(snapshot, family),
    family(
      'gauge',
      'snapshot_age_seconds',
      'Age of the state of the cluster: above 0 where the primary did not answer this scrape',
      [[{}, snapshotAgeMs / 1_000]],
    ),
    ...eachWorker(snapshot, family),
    family(
      'gauge',
      'worker_snapshot_age_seconds',
      'Age of the metrics that stand for the worker: above 0 where it did not answer this scrape',
      [...ages].map(([slot, age]) => [{ worker: slot }, age / 1_000]),
    ),
    ...primaryItself(snapshot.primary, family),
  ];
}

type MakeFamily = (
  type: 'gauge' | 'counter',
  name: string,
  help: string,
  values: Values,
) => MetricJson;

function wholeCluster(snapshot: ClusterSnapshot, family: MakeFamily): MetricJson[] {
  const { workers, balancing, desired, generation, reloads } = snapshot;
  const { acceptBacklog = [], listenOverflowsTotal = null } = snapshot;
  const countOf = (state: WorkerState) => workers.filter((each) => each.state === state).length;
  const byState = STATES.map((state) => [{ state }, countOf(state)] as const);
  const byOutcome = RELOAD_OUTCOMES.map((outcome) => [{ outcome }, reloads[outcome]] as const);
  return [
    family('gauge', 'workers', 'Workers by state', byState),
    family('gauge', 'info', 'How connections reach the workers; always 1', [[{ balancing }, 1]]),
    family('gauge', 'workers_desired', 'Workers there should be', [[{}, desired]]),
    family('gauge', 'generation', 'Number of the last rolling reload that was completed', [
      [{}, generation],
    ]),
    family('counter', 'reloads_total', 'Rolling reloads, by how they ended', byOutcome),
    family(
      'gauge',
      'accept_backlog',
      'Connections that wait in the kernel until a worker accepts them, by address',
      acceptBacklog.map(({ socket, connections }) => [{ socket }, connections]),
    ),
    family(
      'counter',
      'listen_overflows_total',
      'Connections that full accept queues turned away since the machine started, of all its services',
      listenOverflowsTotal === null ? [] : [[{}, listenOverflowsTotal]],
    ),
  ];
}

function eachWorker(snapshot: ClusterSnapshot, family: MakeFamily): MetricJson[] {
  const workers = workersBySlot(snapshot);
  const counts: readonly SlotCounts[] = [...workers, ...snapshot.dismissed];
  const restarts = counts.flatMap(({ slot, restartsByCause }) =>
    FAILURE_CAUSES.map((cause) => [{ worker: slot, cause }, restartsByCause[cause] ?? 0] as const),
  );
  return [
    family(
      'counter',
      'worker_restarts_total',
      'Workers that failed or grew too large and were replaced, by cause',
      restarts,
    ),
    family(
      'gauge',
      'leader',
      'Whether the worker runs what one alone is to run (1) or not (0)',
      byWorker(workers, ({ slot }) => (slot === snapshot.leader?.slot ? 1 : 0)),
    ),
    family(
      'gauge',
      'worker_up',
      'Whether the worker is ready and answers its heartbeats (1) or not (0)',
      byWorker(workers, ({ state, responsive }) => (state === 'ready' && responsive ? 1 : 0)),
    ),
    family(
      'gauge',
      'worker_degraded',
      'Whether the slot is in a crash loop (1) or not (0)',
      byWorker(workers, ({ degraded }) => (degraded ? 1 : 0)),
    ),
    ...SLOT_COUNTERS.map(([name, field, help]) => {
      const values = byWorker(counts, (slot) => read(slot, field));
      return family('counter', name, help, values);
    }),
    ...WORKER_GAUGES.map(([name, field, help]) => {
      const values = byWorker(workers, (worker) => read(worker, field));
      return family('gauge', `worker_${name}`, help, values);
    }),
  ];
}

function primaryItself(primary: ClusterSnapshot['primary'], family: MakeFamily): MetricJson[] {
  if (primary === null) return [];
  const gauges = PROCESS_GAUGES.map(([name, field, help]) =>
    family('gauge', `primary_${name}`, help, [[{}, read(primary, field)!]]),
  );
  const counters = [...PROCESS_COUNTERS, LOG_LINES_DROPPED].map(([name, field, help]) =>
    family('counter', `primary_${name}`, help, [[{}, read(primary, field)!]]),
  );
  return [...gauges, ...counters];
}

/** One worker for each slot: its newest ready process, or its newest process if none is ready. */
function workersBySlot({ workers }: ClusterSnapshot): WorkerSnapshot[] {
  const bySlot = new Map<number, WorkerSnapshot>();
  for (const worker of workers) {
    const before = bySlot.get(worker.slot);
    if (before?.state !== 'ready' || worker.state === 'ready') bySlot.set(worker.slot, worker);
  }
  return [...bySlot.values()];
}

function byWorker<W extends { readonly slot: number }>(
  workers: readonly W[],
  read: (worker: W) => number | null,
): Values {
  return workers.flatMap((worker) => {
    const value = read(worker);
    return value === null ? [] : [[{ worker: worker.slot }, value] as const];
  });
}

function read<T>(from: T, field: keyof T & string): number | null {
  const value = from[field] as number | null;
  if (value === null || !field.endsWith('Ms')) return value;
  // The milliseconds have at most three decimals, so the seconds have at most six decimals.
  return Math.round(value * 1_000) / 1e6;
}
