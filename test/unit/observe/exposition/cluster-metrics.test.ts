import { describe, expect, it } from 'vitest';
import { clusterMetrics } from '../../../../src/observe/exposition/cluster-metrics.js';
import { renderPage } from '../../../../src/observe/exposition/render-page.js';
import type {
  ClusterSnapshot,
  WorkerMetrics,
  WorkerSnapshot,
} from '../../../../src/contract/snapshot/index.js';
import { MetricsPage } from '../../../support/metrics-page.js';
import { PRIMARY } from '../../support/fake-cluster.js';

const READY: WorkerSnapshot = {
  slot: 0,
  pid: 100,
  generation: 0,
  state: 'ready',
  uptimeSeconds: 12.5,
  restarts: 3,
  restartsByCause: { crash: 2, hang: 1 },
  lastExit: null,
  degraded: false,
  abortedRequestsTotal: 6,
  droppedMessagesTotal: 7,
  refusedMetricsTotal: 8,
  heartbeatAgeMs: 250,
  responsive: true,
  residentMemoryBytes: 1_000,
  heapUsedBytes: 500,
  eventLoopUtilization: 0.5,
  eventLoopDelayP99Ms: 20,
  threadUtilization: 0,
  openConnections: 4,
  requestsInFlight: 2,
  requestsTotal: 77,
  rebalancedConnectionsTotal: 3,
  logLinesDroppedTotal: 0,
  droppedConnectionsTotal: 9,
  cpuSecondsTotal: 4.5,
  gcSecondsTotal: 0.75,
};

/** Forked, and not heard of yet. */
const STARTING: WorkerSnapshot = {
  ...READY,
  state: 'starting',
  uptimeSeconds: 0,
  heartbeatAgeMs: null,
  residentMemoryBytes: null,
  heapUsedBytes: null,
  eventLoopUtilization: null,
  eventLoopDelayP99Ms: null,
  threadUtilization: null,
  openConnections: null,
  requestsInFlight: null,
  requestsTotal: 0,
  rebalancedConnectionsTotal: 0,
  logLinesDroppedTotal: 0,
  droppedConnectionsTotal: 0,
  cpuSecondsTotal: 0,
  gcSecondsTotal: 0,
};

const EMPTY: WorkerSnapshot = { ...STARTING, pid: null, state: 'exited' };

function pageOf(
  workers: readonly WorkerSnapshot[],
  {
    snapshot = {},
    snapshotAgeMs,
    ages = [],
  }: {
    snapshot?: Partial<ClusterSnapshot>;
    snapshotAgeMs?: number | undefined;
    ages?: readonly Omit<WorkerMetrics, 'body'>[];
  } = {},
): MetricsPage {
  const state = {
    snapshot: {
      balancing: 'shared',
      ports: [],
      desired: 2,
      ready: 1,
      minReady: 1,
      generation: 3,
      degraded: 0,
      reloads: { completed: 4, aborted: 1, reverted: 0 },
      dismissed: [],
      workers,
      primary: PRIMARY,
      ...snapshot,
    },
    snapshotAgeMs,
    workers: ages.map((age) => ({ ...age, body: '' })),
  };
  return new MetricsPage(renderPage(clusterMetrics(state)));
}

const TYPES = {
  nestjs_cluster_workers: 'gauge',
  nestjs_cluster_info: 'gauge',
  nestjs_cluster_workers_desired: 'gauge',
  nestjs_cluster_generation: 'gauge',
  nestjs_cluster_leader: 'gauge',
  nestjs_cluster_accept_backlog: 'gauge',
  nestjs_cluster_listen_overflows_total: 'counter',
  nestjs_cluster_snapshot_age_seconds: 'gauge',
  nestjs_cluster_reloads_total: 'counter',
  nestjs_cluster_worker_restarts_total: 'counter',
  nestjs_cluster_worker_requests_total: 'counter',
  nestjs_cluster_worker_aborted_requests_total: 'counter',
  nestjs_cluster_worker_cpu_seconds_total: 'counter',
  nestjs_cluster_worker_gc_seconds_total: 'counter',
  nestjs_cluster_rebalanced_connections_total: 'counter',
  nestjs_cluster_log_lines_dropped_total: 'counter',
  nestjs_cluster_ipc_messages_dropped_total: 'counter',
  nestjs_cluster_worker_dropped_connections_total: 'counter',
  nestjs_cluster_worker_refused_metrics_total: 'counter',
  nestjs_cluster_worker_up: 'gauge',
  nestjs_cluster_worker_degraded: 'gauge',
  nestjs_cluster_worker_uptime_seconds: 'gauge',
  nestjs_cluster_worker_resident_memory_bytes: 'gauge',
  nestjs_cluster_worker_heap_used_bytes: 'gauge',
  nestjs_cluster_worker_event_loop_utilization_ratio: 'gauge',
  nestjs_cluster_worker_event_loop_delay_p99_seconds: 'gauge',
  nestjs_cluster_worker_heartbeat_age_seconds: 'gauge',
  nestjs_cluster_worker_open_connections: 'gauge',
  nestjs_cluster_worker_requests_in_flight: 'gauge',
  nestjs_cluster_worker_snapshot_age_seconds: 'gauge',
  nestjs_cluster_primary_uptime_seconds: 'gauge',
  nestjs_cluster_primary_resident_memory_bytes: 'gauge',
  nestjs_cluster_primary_heap_used_bytes: 'gauge',
  nestjs_cluster_primary_event_loop_utilization_ratio: 'gauge',
  nestjs_cluster_primary_event_loop_delay_p99_seconds: 'gauge',
  nestjs_cluster_primary_cpu_seconds_total: 'counter',
  nestjs_cluster_primary_gc_seconds_total: 'counter',
  nestjs_cluster_primary_log_lines_dropped_total: 'counter',
};

const WORKER_METRICS = Object.keys(TYPES).filter((name) => name.includes('cluster_worker_'));
/** The metrics that a worker itself measures. */
const MEASURED = [
  'resident_memory_bytes',
  'heap_used_bytes',
  'event_loop_utilization_ratio',
  'event_loop_delay_p99_seconds',
  'heartbeat_age_seconds',
  'open_connections',
  'requests_in_flight',
].map((name) => `nestjs_cluster_worker_${name}`);

describe('the metrics of the cluster', () => {
  it.each(Object.entries(TYPES))('have %s, a %s with a help text', (name, type) => {
    const { text } = pageOf([READY]);
    expect(text).toContain(`# TYPE ${name} ${type}\n`);
    expect(text).toMatch(new RegExp(`# HELP ${name} \\S+`));
  });

  it('count the workers by state, also the states that none is in', () => {
    const page = pageOf([READY, { ...READY, slot: 1 }, { ...STARTING, slot: 2 }]);
    const count = (state: string) => page.values('nestjs_cluster_workers', { state });
    expect([count('ready'), count('starting'), count('draining'), count('exited')]).toEqual([
      [2],
      [1],
      [0],
      [0],
    ]);
  });

  it('say how many connections wait for a worker, by address', () => {
    const socket = 'http://127.0.0.1:3000';
    const page = pageOf([READY], {
      snapshot: { acceptBacklog: [{ socket, connections: 50 }], listenOverflowsTotal: 4 },
    });
    expect(page.values('nestjs_cluster_accept_backlog', { socket })).toEqual([50]);
    expect(page.values('nestjs_cluster_listen_overflows_total')).toEqual([4]);
    const { text } = pageOf([READY]);
    expect(text).not.toMatch(/^nestjs_cluster_(accept_backlog|listen_overflows_total)/m);
  });

  it('say how many workers there should be, and the generation', () => {
    const page = pageOf([READY]);
    expect(page.values('nestjs_cluster_workers_desired')).toEqual([2]);
    expect(page.values('nestjs_cluster_generation')).toEqual([3]);
  });

  it('keep the counters of a slot that was scaled away, and none of its gauges', () => {
    const page = pageOf([READY], {
      snapshot: {
        dismissed: [
          {
            slot: 7,
            restartsByCause: { oom: 2 },
            abortedRequestsTotal: 3,
            droppedMessagesTotal: 4,
            refusedMetricsTotal: 6,
            requestsTotal: 500,
            rebalancedConnectionsTotal: 9,
            logLinesDroppedTotal: 6,
            droppedConnectionsTotal: 12,
            cpuSecondsTotal: 11,
            gcSecondsTotal: 0.5,
          },
        ],
      },
    });
    expect(page.values('nestjs_cluster_worker_requests_total', { worker: '7' })).toEqual([500]);
    expect(page.values('nestjs_cluster_worker_aborted_requests_total', { worker: '7' })).toEqual([
      3,
    ]);
    expect(
      page.values('nestjs_cluster_worker_restarts_total', { worker: '7', cause: 'oom' }),
    ).toEqual([2]);
    expect(page.values('nestjs_cluster_rebalanced_connections_total', { worker: '7' })).toEqual([
      9,
    ]);
    expect(page.values('nestjs_cluster_log_lines_dropped_total', { worker: '7' })).toEqual([6]);
    expect(page.values('nestjs_cluster_worker_cpu_seconds_total', { worker: '7' })).toEqual([11]);
    expect(page.values('nestjs_cluster_worker_gc_seconds_total', { worker: '7' })).toEqual([0.5]);
    const dropped = [
      'worker_dropped_connections_total',
      'worker_refused_metrics_total',
      'ipc_messages_dropped_total',
    ].flatMap((name) => page.values(`nestjs_cluster_${name}`, { worker: '7' }));
    expect(dropped).toEqual([12, 6, 4]);
    expect(page.values('nestjs_cluster_worker_up', { worker: '7' })).toEqual([]);
  });

  it.each(['shared', 'reuse-port', 'round-robin', 'ports', 'none'])(
    'say how connections reach the workers: %s',
    (balancing) => {
      const page = pageOf([READY], { snapshot: { balancing } });
      expect(page.labelValues('nestjs_cluster_info', 'balancing')).toEqual([balancing]);
      expect(page.values('nestjs_cluster_info')).toEqual([1]);
    },
  );

  it('count the clients that were asked to connect again, by worker and from 0', () => {
    const page = pageOf([
      READY,
      { ...STARTING, slot: 1 },
      { ...EMPTY, slot: 2, rebalancedConnectionsTotal: 8 },
    ]);
    const count = (worker: string) =>
      page.values('nestjs_cluster_rebalanced_connections_total', { worker });
    expect([count('0'), count('1'), count('2')]).toEqual([[3], [0], [8]]);
  });

  it('count restarts by cause, from 0', () => {
    const page = pageOf([READY]);
    const count = (cause: string) =>
      page.values('nestjs_cluster_worker_restarts_total', { worker: '0', cause });
    const causes = ['boot', 'crash', 'exit', 'oom', 'hang', 'memory', 'killed'];
    expect(causes.map(count)).toEqual([[0], [2], [0], [0], [1], [0], [0]]);
  });

  it('count reloads by outcome', () => {
    const page = pageOf([READY]);
    const count = (outcome: string) => page.values('nestjs_cluster_reloads_total', { outcome });
    expect([count('completed'), count('aborted')]).toEqual([[4], [1]]);
  });

  it('count reloads from 0', () => {
    const page = pageOf([], { snapshot: { reloads: { completed: 0, aborted: 0, reverted: 0 } } });
    expect(page.labelValues('nestjs_cluster_reloads_total', 'outcome')).toEqual([
      'completed',
      'aborted',
      'reverted',
    ]);
    expect(page.values('nestjs_cluster_reloads_total')).toEqual([0, 0, 0]);
  });

  it('say which slot is in a crash loop', () => {
    const page = pageOf([
      READY,
      { ...READY, slot: 1, degraded: true },
      { ...EMPTY, slot: 2, degraded: true },
    ]);
    const degraded = (worker: string) => page.values('nestjs_cluster_worker_degraded', { worker });
    expect([degraded('0'), degraded('1'), degraded('2')]).toEqual([[0], [1], [1]]);
  });

  it('give each measurement in the unit of its name', () => {
    const page = pageOf([READY]);
    const value = (name: string) => page.values(`nestjs_cluster_worker_${name}`, { worker: '0' });
    expect(value('uptime_seconds')).toEqual([12.5]);
    expect(value('resident_memory_bytes')).toEqual([1_000]);
    expect(value('heap_used_bytes')).toEqual([500]);
    expect(value('event_loop_utilization_ratio')).toEqual([0.5]);
    expect(value('event_loop_delay_p99_seconds')).toEqual([0.02]);
    expect(value('heartbeat_age_seconds')).toEqual([0.25]);
    expect(value('open_connections')).toEqual([4]);
    expect(value('requests_in_flight')).toEqual([2]);
    expect(value('requests_total')).toEqual([77]);
    expect(value('aborted_requests_total')).toEqual([6]);
    expect(value('cpu_seconds_total')).toEqual([4.5]);
    expect(value('gc_seconds_total')).toEqual([0.75]);
  });

  it('give what the primary measures of itself in the unit of its name', () => {
    const page = pageOf([READY]);
    const value = (name: string) => page.values(`nestjs_cluster_primary_${name}`);
    expect(value('uptime_seconds')).toEqual([60]);
    expect(value('resident_memory_bytes')).toEqual([80_000_000]);
    expect(value('heap_used_bytes')).toEqual([20_000_000]);
    expect(value('event_loop_utilization_ratio')).toEqual([0.125]);
    expect(value('event_loop_delay_p99_seconds')).toEqual([0.003]);
    expect(value('cpu_seconds_total')).toEqual([7.5]);
    expect(value('gc_seconds_total')).toEqual([0.5]);
  });

  it('say nothing of a primary where there is none', () => {
    const { text } = pageOf([READY], { snapshot: { primary: null } });
    expect(text).not.toContain('cluster_primary_');
    expect(text).toContain('nestjs_cluster_worker_up');
  });

  it.each([
    [undefined, 0],
    [0, 0],
    [1_250, 1.25],
  ])('say that they are %d ms old', (snapshotAgeMs, seconds) => {
    const page = pageOf([READY], { snapshotAgeMs });
    expect(page.values('nestjs_cluster_snapshot_age_seconds')).toEqual([seconds]);
  });

  it('are each of one name only', () => {
    const { text } = pageOf([READY]);
    const names = text.match(/# TYPE \S+/g)!.map((line) => line.slice('# TYPE '.length));
    expect(names.toSorted()).toEqual(Object.keys(TYPES).toSorted());
  });

  it.each([
    [1, { state: 'ready', responsive: true }],
    [0, { state: 'ready', responsive: false }],
    [0, { state: 'starting', responsive: true }],
    [0, { state: 'draining', responsive: true }],
    [0, { state: 'exited', responsive: false }],
  ] as const)('say %d for up where a worker is %j', (up, worker) => {
    const page = pageOf([{ ...READY, ...worker }]);
    expect(page.values('nestjs_cluster_worker_up', { worker: '0' })).toEqual([up]);
  });

  it('have no sample of what was not measured, and still say that the worker is not up', () => {
    const page = pageOf([READY, { ...STARTING, slot: 1 }, { ...EMPTY, slot: 2 }]);
    for (const name of MEASURED) expect(page.labelValues(name, 'worker')).toEqual(['0']);
    expect(page.values('nestjs_cluster_worker_up', { worker: '1' })).toEqual([0]);
    expect(page.values('nestjs_cluster_worker_up', { worker: '2' })).toEqual([0]);
    expect(page.text).not.toMatch(/null|NaN|undefined/);
  });

  it('have a sample of what was measured as zero', () => {
    const zero = { ...READY, openConnections: 0, requestsInFlight: 0, requestsTotal: 0 };
    const page = pageOf([{ ...zero, heartbeatAgeMs: 0, eventLoopDelayP99Ms: 0 }]);
    for (const name of ['open_connections', 'requests_in_flight', 'heartbeat_age_seconds']) {
      expect(page.values(`nestjs_cluster_worker_${name}`)).toEqual([0]);
    }
  });

  it('label each worker with its slot, and with nothing that changes', () => {
    const page = pageOf([READY, { ...READY, slot: 1, pid: 999 }], {
      ages: [
        { slot: 0, ageMs: 0 },
        { slot: 1, ageMs: 1_500 },
      ],
    });
    for (const name of WORKER_METRICS) {
      expect([name, page.labelValues(name, 'worker')]).toEqual([name, ['0', '1']]);
    }
    expect(page.text).not.toContain('pid');
    expect(page.text).not.toContain('999');
  });

  it('say how old the metrics of a worker are that did not answer', () => {
    const page = pageOf([READY], { ages: [{ slot: 4, ageMs: 1_500 }] });
    expect(page.values('nestjs_cluster_worker_snapshot_age_seconds', { worker: '4' })).toEqual([
      1.5,
    ]);
  });
});

describe('a slot with two processes', () => {
  const old: WorkerSnapshot = { ...READY, state: 'draining', pid: 1, requestsTotal: 80 };
  const young: WorkerSnapshot = { ...READY, pid: 2, uptimeSeconds: 1, requestsTotal: 80 };

  it('is one series, that of its newer process', () => {
    const page = pageOf([old, young, { ...READY, slot: 1 }]);
    expect(page.values('nestjs_cluster_worker_uptime_seconds', { worker: '0' })).toEqual([1]);
    for (const name of WORKER_METRICS.filter((metric) => !metric.includes('restarts'))) {
      expect(page.values(name, { worker: '0' }).length).toBeLessThanOrEqual(1);
    }
    expect(
      page.values('nestjs_cluster_worker_restarts_total', { worker: '0', cause: 'crash' }),
    ).toEqual([2]);
  });

  it('is one series also of the age of its metrics', () => {
    const page = pageOf([old, young], {
      ages: [
        { slot: 0, ageMs: 0 },
        { slot: 0, ageMs: 300 },
      ],
    });
    expect(page.values('nestjs_cluster_worker_snapshot_age_seconds', { worker: '0' })).toEqual([
      0.3,
    ]);
  });

  it('counts as two workers', () => {
    const page = pageOf([old, young]);
    expect(page.values('nestjs_cluster_workers', { state: 'draining' })).toEqual([1]);
    expect(page.values('nestjs_cluster_workers', { state: 'ready' })).toEqual([1]);
  });
});
