import { describe, expect, it } from 'vitest';
import { clusterMetrics } from '../../../../src/observe/exposition/cluster-metrics.js';
import type {
  ClusterSnapshot,
  WorkerMetrics,
  WorkerSnapshot,
} from '../../../../src/contract/snapshot/types.js';
import { SNAPSHOT } from '../../support/fake-relay.js';
import { workerSnapshot } from '../../support/fake-worker.js';
import { samplesOf } from '../../support/metric-json.js';

const READY = workerSnapshot({
  uptimeSeconds: 12.5,
  restartsByCause: { crash: 2, hang: 1 },
  abortedRequestsTotal: 6,
  heartbeatAgeMs: 250,
  rebalancedConnectionsTotal: 3,
  threadUtilization: 0.5,
  droppedConnectionsTotal: 9,
});

/** Forked, and not heard of yet. */
const STARTING = workerSnapshot({
  state: 'starting',
  heartbeatAgeMs: null,
  residentMemoryBytes: null,
  heapUsedBytes: null,
  eventLoopUtilization: null,
  eventLoopDelayP99Ms: null,
  openConnections: null,
  requestsInFlight: null,
  rebalancedConnectionsTotal: 0,
});

interface About {
  readonly snapshot?: Partial<ClusterSnapshot>;
  readonly snapshotAgeMs?: number | undefined;
  readonly ages?: readonly Pick<WorkerMetrics, 'slot' | 'ageMs'>[];
}

const familiesOf = (
  workers: readonly WorkerSnapshot[],
  { snapshot, snapshotAgeMs, ages = [] }: About = {},
) =>
  clusterMetrics({
    snapshot: { ...SNAPSHOT, workers, ...snapshot },
    snapshotAgeMs,
    workers: ages.map((age) => ({ ...age, generation: 0, body: '' })),
  });

/** Every sample by its name without `nestjs_cluster_`, and its labels. */
function page(workers: readonly WorkerSnapshot[], about?: About): Record<string, number> {
  const samples = Object.entries(samplesOf(familiesOf(workers, about)));
  return Object.fromEntries(
    samples.map(([name, value]) => [
      name.replace(/^nestjs_cluster_/, '').replace(/\{\}$/, ''),
      value,
    ]),
  );
}

/** The samples that match, by that part of their name which the pattern keeps. */
const matching = (samples: Record<string, number>, pattern: RegExp) =>
  Object.fromEntries(
    Object.entries(samples).flatMap(([name, value]) => {
      const found = pattern.exec(name);
      return found === null ? [] : [[found[1], value]];
    }),
  );

/** Every sample of one worker, by its name. */
const ofWorker = (samples: Record<string, number>, worker: number) =>
  matching(samples, new RegExp(`^(\\w+)\\{worker="${worker}"\\}$`));

describe('the metrics of the cluster', () => {
  it('have a help text, and are counters if their names end in _total', () => {
    for (const { name, help, type } of familiesOf([READY])) {
      expect([name, help]).toEqual([name, expect.stringMatching(/\S/)]);
      expect([name, type]).toEqual([name, name.endsWith('_total') ? 'counter' : 'gauge']);
    }
  });

  it('have the state of the cluster, with a series of each label value from 0', () => {
    const socket = 'http://127.0.0.1:3000';
    const snapshot = {
      desired: 4,
      generation: 3,
      balancing: 'ports',
      reloads: { completed: 4, aborted: 1, reverted: 0 },
      acceptBacklog: [{ socket, connections: 50 }],
      leader: { slot: 0 } as ClusterSnapshot['leader'],
    } as const;
    const looping = { ...STARTING, slot: 2, degraded: true };
    const samples = page([READY, { ...READY, slot: 1 }, looping], {
      snapshot,
      snapshotAgeMs: 1_250,
    });
    expect(samples).toMatchObject({
      'workers{state="ready"}': 2,
      'workers{state="starting"}': 1,
      'workers{state="draining"}': 0,
      'workers{state="exited"}': 0,
      [`accept_backlog{socket="${socket}"}`]: 50,
      'info{balancing="ports"}': 1,
      workers_desired: 4,
      generation: 3,
      'reloads_total{outcome="completed"}': 4,
      'reloads_total{outcome="aborted"}': 1,
      'reloads_total{outcome="reverted"}': 0,
      snapshot_age_seconds: 1.25,
      'worker_degraded{worker="0"}': 0,
      'worker_degraded{worker="2"}': 1,
      'leader{worker="0"}': 1,
      'leader{worker="2"}': 0,
    });
    expect(matching(page([READY]), /^(accept_backlog)/)).toEqual({});
    expect(page([READY])).toMatchObject({ snapshot_age_seconds: 0 });
  });

  it('keep the counters of a slot that was scaled away, and none of its gauges', () => {
    const gone = {
      slot: 7,
      restartsByCause: { oom: 2 },
      abortedRequestsTotal: 3,
      requestsTotal: 500,
      rebalancedConnectionsTotal: 9,
      logLinesDroppedTotal: 5,
      droppedConnectionsTotal: 12,
      cpuSecondsTotal: 11,
      gcSecondsTotal: 0.5,
    };
    const samples = page([READY], { snapshot: { dismissed: [gone] } });
    expect(samples).toMatchObject({ 'worker_restarts_total{worker="7",cause="oom"}': 2 });
    expect(ofWorker(samples, 7)).toEqual({
      worker_requests_total: 500,
      worker_aborted_requests_total: 3,
      rebalanced_connections_total: 9,
      log_lines_dropped_total: 5,
      worker_cpu_seconds_total: 11,
      worker_gc_seconds_total: 0.5,
      worker_dropped_connections_total: 12,
    });
  });

  it('count restarts by cause, from 0', () => {
    const causes = matching(page([READY]), /^worker_restarts_total\{worker="0",cause="(\w+)"\}$/);
    const zeros = { boot: 0, exit: 0, oom: 0, memory: 0, killed: 0 };
    expect(causes).toEqual({ ...zeros, crash: 2, hang: 1 });
  });

  it('give each measurement in the unit of its name', () => {
    expect(ofWorker(page([READY]), 0)).toEqual({
      worker_up: 1,
      worker_degraded: 0,
      leader: 0,
      worker_uptime_seconds: 12.5,
      worker_resident_memory_bytes: 100_000_000,
      worker_heap_used_bytes: 50_000_000,
      worker_event_loop_utilization_ratio: 0.25,
      worker_event_loop_delay_p99_seconds: 0.012,
      worker_heartbeat_age_seconds: 0.25,
      worker_open_connections: 3,
      worker_requests_in_flight: 2,
      worker_thread_utilization_ratio: 0.5,
      worker_requests_total: 10,
      worker_aborted_requests_total: 6,
      worker_cpu_seconds_total: 1.5,
      worker_gc_seconds_total: 0.25,
      rebalanced_connections_total: 3,
      log_lines_dropped_total: 2,
      worker_dropped_connections_total: 9,
    });
  });

  it('give what the primary measures of itself in the unit of its name', () => {
    expect(matching(page([READY]), /^primary_(\w+)$/)).toEqual({
      uptime_seconds: 60,
      resident_memory_bytes: 80_000_000,
      heap_used_bytes: 20_000_000,
      event_loop_utilization_ratio: 0.125,
      event_loop_delay_p99_seconds: 0.003,
      cpu_seconds_total: 7.5,
      gc_seconds_total: 0.5,
      log_lines_dropped_total: 4,
    });
  });

  it('say nothing of a primary where there is none', () => {
    const samples = page([READY], { snapshot: { primary: null } });
    expect(matching(samples, /^primary_(\w+)$/)).toEqual({});
    expect(samples).toMatchObject({ 'worker_up{worker="0"}': 1 });
  });

  it.each([
    [1, { state: 'ready', responsive: true }],
    [0, { state: 'ready', responsive: false }],
    [0, { state: 'starting', responsive: true }],
    [0, { state: 'draining', responsive: true }],
    [0, { state: 'exited', responsive: false }],
  ] as const)('say %d for up where a worker is %j', (up, worker) => {
    expect(page([{ ...READY, ...worker }])).toMatchObject({ 'worker_up{worker="0"}': up });
  });

  it('have no sample of what was not measured, and one of what was measured as 0', () => {
    const zero = { openConnections: 0, heartbeatAgeMs: 0, eventLoopDelayP99Ms: 0 };
    const samples = page([
      { ...READY, ...zero },
      { ...STARTING, slot: 1 },
    ]);
    expect(ofWorker(samples, 0)).toMatchObject({
      worker_open_connections: 0,
      worker_heartbeat_age_seconds: 0,
      worker_event_loop_delay_p99_seconds: 0,
    });
    expect(Object.keys(ofWorker(samples, 1)).toSorted()).toEqual(
      Object.keys(ofWorker(samples, 0))
        .filter((name) => !/memory|heap|event_loop|heartbeat|open_conn|in_flight/.test(name))
        .toSorted(),
    );
  });

  it('say how old the metrics of a worker are that did not answer', () => {
    const samples = page([READY], { ages: [{ slot: 4, ageMs: 1_500 }] });
    expect(ofWorker(samples, 4)).toEqual({ worker_snapshot_age_seconds: 1.5 });
  });
});

describe('a slot with two processes', () => {
  const old: WorkerSnapshot = { ...READY, state: 'draining', pid: 1, requestsTotal: 80 };
  const young: WorkerSnapshot = { ...READY, pid: 2, uptimeSeconds: 1, requestsTotal: 80 };
  const ages = [0, 300].map((ageMs) => ({ slot: 0, ageMs }));
  const samples = page([old, young, { ...READY, slot: 1 }], { ages });

  // `samplesOf()` refuses two samples of one name and labels.
  it('is one series, that of its newer process, also of the age of its metrics', () => {
    expect(ofWorker(samples, 0)).toMatchObject({
      worker_uptime_seconds: 1,
      worker_requests_total: 80,
      worker_snapshot_age_seconds: 0.3,
    });
  });

  it('counts as two workers', () => {
    expect(samples).toMatchObject({ 'workers{state="draining"}': 1, 'workers{state="ready"}': 2 });
  });
});
