import {
  type ClusterSnapshot,
  type CollectedMetrics,
  FAILURE_CAUSES,
  RELOAD_OUTCOMES,
  type SlotCounts,
  type WorkerSnapshot,
  type WorkerState,
} from '../../contract/snapshot/index.js';
import { type Labels, type MetricFamily, plainFamily } from './metric-family.js';
import { PRIMARY_METRICS } from './primary-metrics.js';
import { seconds } from './seconds.js';

type Values = readonly (readonly [Labels, number])[];

const STATES: readonly WorkerState[] = ['starting', 'ready', 'draining', 'exited'];

/** A value of each worker, by the name of its metric without `nestjs_cluster_worker_`. */
const WORKER_GAUGES: readonly [string, string, (worker: WorkerSnapshot) => number | null][] = [
  [
    'up',
    'Whether the worker is ready and answers its heartbeats (1) or not (0)',
    (worker) => (worker.state === 'ready' && worker.responsive ? 1 : 0),
  ],
  [
    'degraded',
    'Whether the slot is in a crash loop (1) or not (0)',
    (worker) => (worker.degraded ? 1 : 0),
  ],
  ['uptime_seconds', 'Time since the worker was forked', (worker) => worker.uptimeSeconds],
  [
    'resident_memory_bytes',
    'Resident memory of the worker',
    (worker) => worker.residentMemoryBytes,
  ],
  ['heap_used_bytes', 'JavaScript heap in use by the worker', (worker) => worker.heapUsedBytes],
  [
    'event_loop_utilization_ratio',
    'Share of the last heartbeat interval that the event loop was busy, 0 to 1',
    (worker) => worker.eventLoopUtilization,
  ],
  [
    'event_loop_delay_p99_seconds',
    '99th percentile of the event loop delay over the last heartbeat interval',
    (worker) => seconds(worker.eventLoopDelayP99Ms),
  ],
  [
    'heartbeat_age_seconds',
    "Time since the worker's last sign of life",
    (worker) => seconds(worker.heartbeatAgeMs),
  ],
  ['open_connections', 'Connections open to the worker', (worker) => worker.openConnections],
  [
    'requests_in_flight',
    'Requests that the worker has begun and not answered',
    (worker) => worker.requestsInFlight,
  ],
];

/** What is counted for each slot, by the name of its metric without `nestjs_cluster_`. */
const SLOT_COUNTERS: readonly [string, string, (slot: SlotCounts) => number][] = [
  ['worker_requests_total', 'Responses finished by the worker', (slot) => slot.requestsTotal],
  [
    'worker_aborted_requests_total',
    'Requests cut off because a drain reached its deadline',
    (slot) => slot.abortedRequestsTotal,
  ],
  [
    'worker_cpu_seconds_total',
    'CPU time of the worker, user and system, of all its threads',
    (slot) => slot.cpuSecondsTotal,
  ],
  [
    'worker_gc_seconds_total',
    'Time that the worker spent in garbage collections',
    (slot) => slot.gcSecondsTotal,
  ],
  [
    'rebalanced_connections_total',
    'Connections closed because their clients were asked to connect again, for the balance',
    (slot) => slot.rebalancedConnectionsTotal,
  ],
  [
    'log_lines_dropped_total',
    'Lines that the worker could not write to standard output or standard error',
    (slot) => slot.logLinesDroppedTotal,
  ],
  [
    'worker_dropped_connections_total',
    'Connections turned away because the worker had as many as its limit of open files has room for',
    (slot) => slot.droppedConnectionsTotal,
  ],
  [
    'worker_refused_metrics_total',
    'Times that the metrics of the worker were too large for the primary to hold beside those of the others',
    (slot) => slot.refusedMetricsTotal,
  ],
  [
    'ipc_messages_dropped_total',
    'Messages of the worker that do not match the protocol',
    (slot) => slot.droppedMessagesTotal,
  ],
];

/** The metrics that describe the cluster itself, made from its snapshot. */
export function clusterMetrics(
  { snapshot, workers: reports, snapshotAgeMs = 0 }: Omit<CollectedMetrics, 'retired'>,
  prefix: string,
): MetricFamily[] {
  const workers = workersBySlot(snapshot);
  const counts: readonly SlotCounts[] = [...workers, ...snapshot.dismissed];
  const { primary } = snapshot;
  const family = (type: 'gauge' | 'counter', name: string, help: string, values: Values) =>
    plainFamily(type, `${prefix}nestjs_cluster_${name}`, help, values);
  const gauge = (name: string, help: string, values: Values) => family('gauge', name, help, values);
  const counter = (name: string, help: string, values: Values) =>
    family('counter', name, help, values);
  return [
    gauge(
      'workers',
      'Workers by state',
      STATES.map((state) => [
        { state },
        snapshot.workers.filter((worker) => worker.state === state).length,
      ]),
    ),
    gauge('info', 'How connections reach the workers; always 1', [
      [{ balancing: snapshot.balancing }, 1],
    ]),
    gauge('workers_desired', 'Workers there should be', [[{}, snapshot.desired]]),
    gauge('generation', 'Number of the last rolling reload that was completed', [
      [{}, snapshot.generation],
    ]),
    gauge(
      'snapshot_age_seconds',
      'Age of the state of the cluster: above 0 where the primary did not answer this scrape',
      [[{}, snapshotAgeMs / 1_000]],
    ),
    counter(
      'reloads_total',
      'Rolling reloads, by how they ended',
      RELOAD_OUTCOMES.map((outcome) => [{ outcome }, snapshot.reloads[outcome]]),
    ),
    counter(
      'worker_restarts_total',
      'Workers that failed or grew too large and were replaced, by cause',
      counts.flatMap(({ slot, restartsByCause }) =>
        FAILURE_CAUSES.map(
          (cause) => [{ worker: slot, cause }, restartsByCause[cause] ?? 0] as const,
        ),
      ),
    ),
    gauge('quarantined_requests', 'Requests that have ended workers and are answered 503', [
      [{}, snapshot.quarantined ?? 0],
    ]),
    gauge(
      'leader',
      'Whether the worker runs what one alone is to run (1) or not (0)',
      byWorker(workers, ({ slot }) => (slot === snapshot.leader?.slot ? 1 : 0)),
    ),
    ...SLOT_COUNTERS.map(([name, help, read]) => counter(name, help, byWorker(counts, read))),
    ...WORKER_GAUGES.map(([name, help, read]) =>
      gauge(`worker_${name}`, help, byWorker(workers, read)),
    ),
    gauge(
      'worker_snapshot_age_seconds',
      'Age of the metrics that stand for the worker: above 0 where it did not answer this scrape',
      [...new Map(reports.map((each) => [each.slot, each.ageMs]))].map(([slot, age]) => [
        { worker: slot },
        age / 1_000,
      ]),
    ),
    ...(primary === null
      ? []
      : PRIMARY_METRICS.map(([name, type, help, read]) =>
          family(type, `primary_${name}`, help, [[{}, read(primary)]]),
        )),
  ];
}

/**
 * One worker a slot. A slot that is being replaced has several processes: the newest that is ready
 * stands for it, or the newest, where none is.
 */
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
