import { type Metric, Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { clusterMetrics } from '../../src/metrics/cluster-metrics.js';
import type {
  ClusterSnapshot,
  CollectedMetrics,
  WorkerSnapshot,
} from '../../src/snapshot/index.js';
import { MetricsPage } from '../support/metrics-page.js';

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
  heartbeatAgeMs: 250,
  responsive: true,
  residentMemoryBytes: 1_000,
  heapUsedBytes: 500,
  eventLoopUtilization: 0.5,
  eventLoopDelayP99Ms: 20,
  openConnections: 4,
  requestsInFlight: 2,
  requestsTotal: 77,
  rebalancedConnectionsTotal: 3,
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
  openConnections: null,
  requestsInFlight: null,
  requestsTotal: 0,
  rebalancedConnectionsTotal: 0,
};

const EMPTY: WorkerSnapshot = { ...STARTING, pid: null, state: 'exited' };

async function pageOf(
  workers: readonly WorkerSnapshot[],
  {
    snapshot = {},
    ages = [],
    prefix = '',
  }: {
    snapshot?: Partial<ClusterSnapshot>;
    ages?: CollectedMetrics['workers'];
    prefix?: string;
  } = {},
): Promise<MetricsPage> {
  const collected: CollectedMetrics = {
    snapshot: {
      balancing: 'shared',
      ports: [],
      desired: 2,
      ready: 1,
      generation: 3,
      degraded: 0,
      reloads: { completed: 4, aborted: 1 },
      dismissed: [],
      workers,
      ...snapshot,
    },
    ageMs: 0,
    workers: ages,
    retired: [],
  };
  const registry = new Registry();
  for (const metric of clusterMetrics(collected, prefix)) {
    registry.registerMetric({ ...metric, get: async () => metric } as unknown as Metric);
  }
  return new MetricsPage(await registry.metrics());
}

const TYPES = {
  nestjs_cluster_workers: 'gauge',
  nestjs_cluster_info: 'gauge',
  nestjs_cluster_workers_desired: 'gauge',
  nestjs_cluster_generation: 'gauge',
  nestjs_cluster_reloads_total: 'counter',
  nestjs_cluster_worker_restarts_total: 'counter',
  nestjs_cluster_worker_requests_total: 'counter',
  nestjs_cluster_worker_aborted_requests_total: 'counter',
  nestjs_cluster_rebalanced_connections_total: 'counter',
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
};

const WORKER_METRICS = Object.keys(TYPES).filter((name) => name.includes('cluster_worker_'));
/** Those that a worker itself measures. */
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
  it.each(Object.entries(TYPES))('have %s, a %s with a help text', async (name, type) => {
    const { text } = await pageOf([READY]);
    expect(text).toContain(`# TYPE ${name} ${type}\n`);
    expect(text).toMatch(new RegExp(`# HELP ${name} \\S+`));
  });

  it('have the prefix before every name', async () => {
    const { text } = await pageOf([READY], { prefix: 'shop_' });
    expect(text.match(/# TYPE \S+/g)).toEqual(
      expect.arrayContaining(Object.keys(TYPES).map((name) => `# TYPE shop_${name}`)),
    );
    expect(text).not.toMatch(/^nestjs_cluster/m);
  });

  it('count the workers by state, also the states that none is in', async () => {
    const page = await pageOf([READY, { ...READY, slot: 1 }, { ...STARTING, slot: 2 }]);
    const count = (state: string) => page.values('nestjs_cluster_workers', { state });
    expect([count('ready'), count('starting'), count('draining'), count('exited')]).toEqual([
      [2],
      [1],
      [0],
      [0],
    ]);
  });

  it('say how many workers there should be, and the generation', async () => {
    const page = await pageOf([READY]);
    expect(page.values('nestjs_cluster_workers_desired')).toEqual([2]);
    expect(page.values('nestjs_cluster_generation')).toEqual([3]);
  });

  it('keep the counters of a slot that was scaled away, and none of its gauges', async () => {
    const page = await pageOf([READY], {
      snapshot: {
        dismissed: [
          {
            slot: 7,
            restartsByCause: { oom: 2 },
            abortedRequestsTotal: 3,
            requestsTotal: 500,
            rebalancedConnectionsTotal: 9,
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
    expect(page.values('nestjs_cluster_worker_up', { worker: '7' })).toEqual([]);
  });

  it.each(['shared', 'reuse-port', 'round-robin', 'ports', 'none'])(
    'say how connections reach the workers: %s',
    async (balancing) => {
      const page = await pageOf([READY], { snapshot: { balancing } });
      expect(page.labelValues('nestjs_cluster_info', 'balancing')).toEqual([balancing]);
      expect(page.values('nestjs_cluster_info')).toEqual([1]);
    },
  );

  it('count the clients that were asked to connect again, by worker and from 0', async () => {
    const page = await pageOf([
      READY,
      { ...STARTING, slot: 1 },
      { ...EMPTY, slot: 2, rebalancedConnectionsTotal: 8 },
    ]);
    const count = (worker: string) =>
      page.values('nestjs_cluster_rebalanced_connections_total', { worker });
    expect([count('0'), count('1'), count('2')]).toEqual([[3], [0], [8]]);
  });

  it('count restarts by cause, from 0', async () => {
    const page = await pageOf([READY]);
    const count = (cause: string) =>
      page.values('nestjs_cluster_worker_restarts_total', { worker: '0', cause });
    const causes = ['boot', 'crash', 'exit', 'oom', 'hang', 'memory', 'killed'];
    expect(causes.map(count)).toEqual([[0], [2], [0], [0], [1], [0], [0]]);
  });

  it('count reloads by outcome', async () => {
    const page = await pageOf([READY]);
    const count = (outcome: string) => page.values('nestjs_cluster_reloads_total', { outcome });
    expect([count('completed'), count('aborted')]).toEqual([[4], [1]]);
  });

  it('count reloads from 0', async () => {
    const page = await pageOf([], { snapshot: { reloads: { completed: 0, aborted: 0 } } });
    expect(page.labelValues('nestjs_cluster_reloads_total', 'outcome')).toEqual([
      'completed',
      'aborted',
    ]);
    expect(page.values('nestjs_cluster_reloads_total')).toEqual([0, 0]);
  });

  it('say which slot is in a crash loop (C6)', async () => {
    const page = await pageOf([
      READY,
      { ...READY, slot: 1, degraded: true },
      { ...EMPTY, slot: 2, degraded: true },
    ]);
    const degraded = (worker: string) => page.values('nestjs_cluster_worker_degraded', { worker });
    expect([degraded('0'), degraded('1'), degraded('2')]).toEqual([[0], [1], [1]]);
  });

  it('give each measurement in the unit of its name', async () => {
    const page = await pageOf([READY]);
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
  });

  it.each([
    [1, { state: 'ready', responsive: true }],
    [0, { state: 'ready', responsive: false }],
    [0, { state: 'starting', responsive: true }],
    [0, { state: 'draining', responsive: true }],
    [0, { state: 'exited', responsive: false }],
  ] as const)('say %d for up where a worker is %j', async (up, worker) => {
    const page = await pageOf([{ ...READY, ...worker }]);
    expect(page.values('nestjs_cluster_worker_up', { worker: '0' })).toEqual([up]);
  });

  it('have no sample of what was not measured, and still say that the worker is not up', async () => {
    const page = await pageOf([READY, { ...STARTING, slot: 1 }, { ...EMPTY, slot: 2 }]);
    for (const name of MEASURED) expect(page.labelValues(name, 'worker')).toEqual(['0']);
    expect(page.values('nestjs_cluster_worker_up', { worker: '1' })).toEqual([0]);
    expect(page.values('nestjs_cluster_worker_up', { worker: '2' })).toEqual([0]);
    expect(page.text).not.toMatch(/null|NaN|undefined/);
  });

  it('have a sample of what was measured as zero', async () => {
    const zero = { ...READY, openConnections: 0, requestsInFlight: 0, requestsTotal: 0 };
    const page = await pageOf([{ ...zero, heartbeatAgeMs: 0, eventLoopDelayP99Ms: 0 }]);
    for (const name of ['open_connections', 'requests_in_flight', 'heartbeat_age_seconds']) {
      expect(page.values(`nestjs_cluster_worker_${name}`)).toEqual([0]);
    }
  });

  it('label each worker with its slot, and with nothing that changes', async () => {
    const page = await pageOf([READY, { ...READY, slot: 1, pid: 999 }], {
      ages: [
        { slot: 0, ageMs: 0, body: '' },
        { slot: 1, ageMs: 1_500, body: '' },
      ],
    });
    for (const name of WORKER_METRICS) {
      expect([name, page.labelValues(name, 'worker')]).toEqual([name, ['0', '1']]);
    }
    expect(page.text).not.toContain('pid');
    expect(page.text).not.toContain('999');
  });

  it('say how old the metrics of a worker are that did not answer', async () => {
    const page = await pageOf([READY], { ages: [{ slot: 4, ageMs: 1_500, body: '' }] });
    expect(page.values('nestjs_cluster_worker_snapshot_age_seconds', { worker: '4' })).toEqual([
      1.5,
    ]);
  });
});

describe('a slot with two processes', () => {
  const old: WorkerSnapshot = { ...READY, state: 'draining', pid: 1, requestsTotal: 80 };
  const young: WorkerSnapshot = { ...READY, pid: 2, uptimeSeconds: 1, requestsTotal: 80 };

  it('is one series, that of its newer process', async () => {
    const page = await pageOf([old, young, { ...READY, slot: 1 }]);
    expect(page.values('nestjs_cluster_worker_uptime_seconds', { worker: '0' })).toEqual([1]);
    for (const name of WORKER_METRICS.filter((metric) => !metric.includes('restarts'))) {
      expect(page.values(name, { worker: '0' }).length).toBeLessThanOrEqual(1);
    }
    expect(
      page.values('nestjs_cluster_worker_restarts_total', { worker: '0', cause: 'crash' }),
    ).toEqual([2]);
  });

  it('is one series also of the age of its metrics', async () => {
    const page = await pageOf([old, young], {
      ages: [
        { slot: 0, ageMs: 0, body: '' },
        { slot: 0, ageMs: 300, body: '' },
      ],
    });
    expect(page.values('nestjs_cluster_worker_snapshot_age_seconds', { worker: '0' })).toHaveLength(
      1,
    );
  });

  it('counts as two workers', async () => {
    const page = await pageOf([old, young]);
    expect(page.values('nestjs_cluster_workers', { state: 'draining' })).toEqual([1]);
    expect(page.values('nestjs_cluster_workers', { state: 'ready' })).toEqual([1]);
  });
});
