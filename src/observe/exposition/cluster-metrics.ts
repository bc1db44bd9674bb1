import {
  COUNTERS,
  GAUGES,
  OF_ANY_PROCESS,
  type Stat,
  STATS,
} from '../../contract/snapshot/stats.js';
import {
  type ClusterSnapshot,
  type CollectedMetrics,
  FAILURE_CAUSES,
  type MetricJson,
  type MetricLabels,
  RELOAD_OUTCOMES,
  type StatName,
  type SlotCounts,
  type WorkerSnapshot,
  type WorkerState,
} from '../../contract/snapshot/index.js';

type Values = readonly (readonly [MetricLabels, number])[];

const STATES: readonly WorkerState[] = ['starting', 'ready', 'draining', 'exited'];

/** Metrics that are each read from one field. A field whose name ends in `Ms` is shown in seconds. */
type Rows<T> = readonly {
  readonly field: keyof T & string;
  readonly metric: string;
  readonly help: string;
}[];

const rowsOf = <Name extends StatName>(names: readonly Name[]) =>
  names.map((field) => ({ field, ...(STATS[field] as Stat) }));

const UPTIME = {
  field: 'uptimeSeconds',
  metric: 'worker_uptime_seconds',
  help: 'Time since the process was started',
} as const;

const WORKER_GAUGES: Rows<WorkerSnapshot> = [
  UPTIME,
  {
    field: 'heartbeatAgeMs',
    metric: 'worker_heartbeat_age_seconds',
    help: "Time since the worker's last sign of life",
  },
  ...rowsOf(GAUGES),
];

/** The counters of each slot. */
const SLOT_COUNTERS: Rows<SlotCounts> = [
  ...rowsOf(COUNTERS),
  {
    field: 'abortedRequestsTotal',
    metric: 'worker_aborted_requests_total',
    help: 'Requests cut off because a drain reached its deadline',
  },
  {
    field: 'droppedMessagesTotal',
    metric: 'ipc_messages_dropped_total',
    help: 'Messages of the worker that do not match the protocol',
  },
];

/** The metrics that describe the cluster itself, computed from its snapshot. */
export function clusterMetrics({
  snapshot,
  workers: reports,
  snapshotAgeMs = 0,
}: Omit<CollectedMetrics, 'retired'>): MetricJson[] {
  const ages = new Map(reports.map((each) => [each.slot, each.ageMs]));
  return [
    ...wholeCluster(snapshot),
    family(
      'gauge',
      'snapshot_age_seconds',
      'Age of the state of the cluster: above 0 where the primary did not answer this scrape',
      [[{}, snapshotAgeMs / 1_000]],
    ),
    ...eachWorker(snapshot),
    family(
      'gauge',
      'worker_snapshot_age_seconds',
      'Age of the metrics that stand for the worker: above 0 where it did not answer this scrape',
      [...ages].map(([slot, age]) => [{ worker: slot }, age / 1_000]),
    ),
    ...primaryItself(snapshot.primary),
  ];
}

function family(type: 'gauge' | 'counter', name: string, help: string, values: Values): MetricJson {
  return {
    name: `nestjs_cluster_${name}`,
    help,
    type,
    aggregator: 'sum',
    values: values.map(([labels, value]) => ({ labels, value })),
  };
}

function wholeCluster(snapshot: ClusterSnapshot): MetricJson[] {
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

function eachWorker(snapshot: ClusterSnapshot): MetricJson[] {
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
    ...SLOT_COUNTERS.map(({ field, metric, help }) => {
      const values = byWorker(counts, (slot) => read(slot, field));
      return family('counter', metric, help, values);
    }),
    ...WORKER_GAUGES.map(({ field, metric, help }) => {
      const values = byWorker(workers, (worker) => read(worker, field));
      return family('gauge', metric, help, values);
    }),
  ];
}

const ofPrimary = (metric: string): string => `primary_${metric.replace(/^worker_/, '')}`;

function primaryItself(primary: ClusterSnapshot['primary']): MetricJson[] {
  if (primary === null) return [];
  const uptime = family('gauge', ofPrimary(UPTIME.metric), UPTIME.help, [
    [{}, primary.uptimeSeconds],
  ]);
  const measured = rowsOf(OF_ANY_PROCESS).map(({ field, isCounter, metric, help }) =>
    family(isCounter ? 'counter' : 'gauge', ofPrimary(metric), help, [[{}, read(primary, field)!]]),
  );
  return [uptime, ...measured];
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
