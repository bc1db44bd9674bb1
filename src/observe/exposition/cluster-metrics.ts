import {
  COUNTERS,
  GAUGES,
  OF_ANY_PROCESS,
  type Stat,
  STATS,
  type StatName,
} from '../../contract/stats.js';
import {
  type ClusterSnapshot,
  type CollectedMetrics,
  FAILURE_CAUSES,
  type MetricJson,
  type MetricLabels,
  RELOAD_OUTCOMES,
  type SlotCounts,
  type WorkerSnapshot,
  type WorkerState,
} from '../../contract/snapshot/types.js';

type Values = readonly (readonly [MetricLabels, number])[];

interface Source {
  readonly snapshot: ClusterSnapshot;
  /** One worker per slot. */
  readonly workers: readonly WorkerSnapshot[];
  /** The counts of all slots, including removed slots. */
  readonly counts: readonly SlotCounts[];
  readonly reports: CollectedMetrics['workers'];
  readonly snapshotAgeMs: number;
}

/** The name lacks the prefix `nestjs_cluster_`. A name that ends in `_total` makes the metric a counter. */
type Row = readonly [metric: string, help: string, read: (from: Source) => Values];

const STATES: readonly WorkerState[] = ['starting', 'ready', 'draining', 'exited'];

const UPTIME = 'Time since the process was started';

/** Metrics of the cluster. The measurements that a worker takes of itself are rows of {@link STATS}. */
const ROWS: readonly Row[] = [
  [
    'workers',
    'Workers by state',
    ({ snapshot: { workers } }) =>
      STATES.map((state) => [{ state }, workers.filter((each) => each.state === state).length]),
  ],
  [
    'info',
    'Balancing strategy of the cluster; always 1',
    ({ snapshot: { balancing } }) => [[{ balancing }, 1]],
  ],
  ['workers_desired', 'Desired number of workers', ({ snapshot }) => [[{}, snapshot.desired]]],
  [
    'generation',
    'Generation of the last completed reload',
    ({ snapshot }) => [[{}, snapshot.generation]],
  ],
  [
    'reloads_total',
    'Rolling reloads, by outcome',
    ({ snapshot: { reloads } }) =>
      RELOAD_OUTCOMES.map((outcome) => [{ outcome }, reloads[outcome]]),
  ],
  [
    'accept_backlog',
    'Connections in the kernel that no worker has accepted yet, by address',
    ({ snapshot: { acceptBacklog = [] } }) =>
      acceptBacklog.map(({ socket, connections }) => [{ socket }, connections]),
  ],
  [
    'snapshot_age_seconds',
    'Age of the cluster state; above 0 if the primary did not answer this scrape',
    ({ snapshotAgeMs }) => [[{}, snapshotAgeMs / 1_000]],
  ],
  [
    'worker_restarts_total',
    'Workers replaced because they failed or exceeded a memory limit, by cause',
    ({ counts }) =>
      counts.flatMap(({ slot, restartsByCause: restarts }) =>
        FAILURE_CAUSES.map((cause) => [{ worker: slot, cause }, restarts[cause] ?? 0] as const),
      ),
  ],
  [
    'leader',
    'Whether the worker is the leader (1) or not (0)',
    ({ workers, snapshot: { leader } }) =>
      byWorker(workers, ({ slot }) => Number(slot === leader?.slot)),
  ],
  [
    'worker_up',
    'Whether the worker is ready and answering heartbeats (1) or not (0)',
    ({ workers }) =>
      byWorker(workers, ({ state, responsive }) => Number(state === 'ready' && responsive)),
  ],
  [
    'worker_degraded',
    'Whether the slot is in a crash loop (1) or not (0)',
    ({ workers }) => byWorker(workers, ({ degraded }) => Number(degraded)),
  ],
  ...COUNTERS.map((name) => ofSlot(name, STATS[name])),
  ofSlot('abortedRequestsTotal', {
    metric: 'worker_aborted_requests_total',
    help: 'Requests aborted because a drain timed out',
  }),
  ofWorker('uptimeSeconds', { metric: 'worker_uptime_seconds', help: UPTIME }),
  ofWorker('heartbeatAgeMs', {
    metric: 'worker_heartbeat_age_seconds',
    help: 'Time since the last message from the worker',
  }),
  ...GAUGES.map((name) => ofWorker(name, STATS[name])),
  [
    'worker_snapshot_age_seconds',
    "Age of the worker's metrics; above 0 if it did not answer this scrape",
    ({ reports }) => {
      const ages = new Map(reports.map(({ slot, ageMs }) => [slot, ageMs]));
      return [...ages].map(([slot, ageMs]) => [{ worker: slot }, ageMs / 1_000]);
    },
  ],
  ofPrimary('uptimeSeconds', { metric: 'worker_uptime_seconds', help: UPTIME }),
  ...OF_ANY_PROCESS.map((name) => ofPrimary(name, STATS[name])),
];

function ofSlot(field: keyof SlotCounts, { metric, help }: Stat): Row {
  return [metric, help, ({ counts }) => byWorker(counts, (slot) => read(slot, field))];
}

function ofWorker(field: keyof WorkerSnapshot, { metric, help }: Stat): Row {
  return [metric, help, ({ workers }) => byWorker(workers, (worker) => read(worker, field))];
}

function ofPrimary(field: StatName | 'uptimeSeconds', { metric, help }: Stat): Row {
  const name = `primary_${metric.replace(/^worker_/, '')}`;
  return [
    name,
    help,
    ({ snapshot: { primary } }) => (primary === null ? [] : [[{}, read(primary, field as never)!]]),
  ];
}

function byWorker<W extends { readonly slot: number }>(
  workers: readonly W[],
  valueOf: (worker: W) => number | null,
): Values {
  return workers.flatMap((worker) => {
    const value = valueOf(worker);
    return value === null ? [] : [[{ worker: worker.slot }, value] as const];
  });
}

/** Reads a field. Converts fields whose name ends in `Ms` to seconds. */
function read<T>(from: T, field: keyof T & string): number | null {
  const value = from[field] as number | null;
  if (value === null || !field.endsWith('Ms')) return value;
  // Milliseconds have at most three decimals, so seconds have at most six.
  return Math.round(value * 1_000) / 1e6;
}

/** Computes the metrics of the cluster itself from its snapshot. */
export function clusterMetrics({
  snapshot,
  workers: reports,
  snapshotAgeMs = 0,
}: Omit<CollectedMetrics, 'retired'>): MetricJson[] {
  const workers = workersBySlot(snapshot);
  const counts: readonly SlotCounts[] = [...workers, ...snapshot.dismissed];
  const source: Source = { snapshot, workers, counts, reports, snapshotAgeMs };
  const shown = ROWS.filter(
    ([metric]) => snapshot.primary !== null || !metric.startsWith('primary_'),
  );
  return shown.map(([metric, help, valuesOf]) => ({
    name: `nestjs_cluster_${metric}`,
    help,
    type: metric.endsWith('_total') ? 'counter' : 'gauge',
    aggregator: 'sum',
    values: valuesOf(source).map(([labels, value]) => ({ labels, value })),
  }));
}

/** One worker per slot: the newest ready worker, or the newest worker if none is ready. */
function workersBySlot({ workers }: ClusterSnapshot): WorkerSnapshot[] {
  const bySlot = new Map<number, WorkerSnapshot>();
  for (const worker of workers) {
    const before = bySlot.get(worker.slot);
    if (before?.state !== 'ready' || worker.state === 'ready') bySlot.set(worker.slot, worker);
  }
  return [...bySlot.values()];
}
