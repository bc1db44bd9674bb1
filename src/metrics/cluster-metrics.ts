import {
  type CollectedMetrics,
  FAILURE_CAUSES,
  RELOAD_OUTCOMES,
  type SlotCounts,
  type WorkerSnapshot,
  type WorkerState,
} from '../snapshot/index.js';
import type { MetricJson, Sample } from './metric-json.js';

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
    'Whether the slot is in a crash loop and retried at the longest delay (1) or not (0)',
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

/** The metrics that describe the cluster itself, made from its snapshot. */
export function clusterMetrics(collected: CollectedMetrics, prefix: string): MetricJson[] {
  const { snapshot } = collected;
  const named = (name: string) => `${prefix}nestjs_cluster_${name}`;
  // A slot that is being replaced has two processes; the newer one, listed last, is its worker.
  const workers = [...new Map(snapshot.workers.map((worker) => [worker.slot, worker])).values()];
  const counts: readonly SlotCounts[] = [...workers, ...snapshot.dismissed];
  const gauge = (name: string, help: string, values: Sample[]): MetricJson => ({
    name: named(name),
    help,
    type: 'gauge',
    values,
  });
  const counter = (name: string, help: string, values: Sample[]): MetricJson => ({
    ...gauge(name, help, values),
    type: 'counter',
  });
  return [
    gauge(
      'workers',
      'Workers by state',
      STATES.map((state) => ({
        labels: { state },
        value: snapshot.workers.filter((worker) => worker.state === state).length,
      })),
    ),
    gauge('info', 'How connections reach the workers; always 1', [
      { labels: { balancing: snapshot.balancing }, value: 1 },
    ]),
    gauge('workers_desired', 'Workers there should be', [single(snapshot.desired)]),
    gauge('generation', 'Number of the last rolling reload that was completed', [
      single(snapshot.generation),
    ]),
    counter(
      'reloads_total',
      'Rolling reloads, by how they ended',
      RELOAD_OUTCOMES.map((outcome) => ({ labels: { outcome }, value: snapshot.reloads[outcome] })),
    ),
    counter(
      'worker_restarts_total',
      'Workers that failed or grew too large and were replaced, by cause',
      counts.flatMap(({ slot, restartsByCause }) =>
        FAILURE_CAUSES.map((cause) => ({
          labels: { worker: slot, cause },
          value: restartsByCause[cause] ?? 0,
        })),
      ),
    ),
    counter(
      'worker_requests_total',
      'Responses finished by the worker',
      byWorker(counts, (slot) => slot.requestsTotal),
    ),
    counter(
      'worker_aborted_requests_total',
      'Requests cut off because a drain reached its deadline',
      byWorker(counts, (slot) => slot.abortedRequestsTotal),
    ),
    counter(
      'rebalanced_connections_total',
      'Connections closed because their clients were asked to connect again, for the balance',
      byWorker(counts, (slot) => slot.rebalancedConnectionsTotal),
    ),
    ...WORKER_GAUGES.map(([name, help, read]) =>
      gauge(`worker_${name}`, help, byWorker(workers, read)),
    ),
    gauge(
      'worker_snapshot_age_seconds',
      'Age of the metrics that stand for the worker: above 0 where it did not answer this scrape',
      [...new Map(collected.workers.map(({ slot, ageMs }) => [slot, ageMs]))].map(
        ([slot, ageMs]) => ({ labels: { worker: slot }, value: ageMs / 1_000 }),
      ),
    ),
  ];
}

function single(value: number): Sample {
  return { labels: {}, value };
}

function byWorker<W extends { readonly slot: number }>(
  workers: readonly W[],
  read: (worker: W) => number | null,
): Sample[] {
  return workers.flatMap((worker) => {
    const value = read(worker);
    return value === null ? [] : [{ labels: { worker: worker.slot }, value }];
  });
}

function seconds(ms: number | null): number | null {
  return ms === null ? null : ms / 1_000;
}
