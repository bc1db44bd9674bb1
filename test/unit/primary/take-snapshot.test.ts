import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ClusterState, Slot, WorkerId } from '../../../src/decide/cluster-state.js';
import { newSlot } from '../../../src/decide/scaling.js';
import { newCluster } from '../../../src/decide/transition.js';
import { WorkerMap } from '../../../src/decide/cluster-state.js';
import { NO_FAILURES } from '../../../src/decide/policies/restart.policy.js';
import { SlotCounts, takeSnapshot } from '../../../src/primary/take-snapshot.js';
import type { WorkerHandle } from '../../../src/primary/worker-handle.js';
import type { WorkerExit } from '../../../src/contract/snapshot/index.js';
import { PRIMARY } from '../support/fake-cluster.js';
import { FakeWorker, STATS } from '../support/fake-worker.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const RELEASE = { generation: 4, script: '/app/main.js', cwd: '/app' };

const EXIT: WorkerExit = {
  cause: 'hang',
  code: null,
  signal: 'SIGKILL',
  at: '2026-01-01T00:00:00.000Z',
};

const DEGRADED = { failures: { ...NO_FAILURES, degraded: true } };

/** A slot, and its processes as they are in it. */
interface Place extends Partial<Slot> {
  readonly leaving?: FakeWorker;
  readonly holds?: FakeWorker;
  readonly candidate?: FakeWorker;
  readonly counts?: SlotCounts;
}

/** The snapshot of a cluster with these slots, numbered from 0. */
function snapshotOf(places: readonly Place[], about: Partial<ClusterState> = {}, ports?: number[]) {
  let workers = new WorkerMap();
  const handles = new Map<WorkerId, WorkerHandle>();
  let replacement: object | undefined;
  const add = (worker: FakeWorker | undefined, slot: number) => {
    if (worker === undefined) return undefined;
    const id = workers.size + 1;
    workers = workers.with({ ...worker.handle.known()!, id, slot });
    handles.set(id, worker.handle);
    return id;
  };
  const slots = places.map((place, index) => {
    const { leaving, holds, candidate } = place;
    // Processes are added in the order in which the snapshot lists them.
    const candidateId = add(candidate, index);
    const worker = add(holds, index);
    add(leaving, index);
    if (candidateId !== undefined) {
      replacement = { slot: index, phase: 'booting', candidate: candidateId };
    }
    return { ...newSlot(index, RELEASE), ...place, worker };
  });
  const state = {
    ...newCluster(slots.length, RELEASE, 0, 0),
    minReady: 'all' as const,
    reloads: { completed: 3, aborted: 1, reverted: 0 },
    slots,
    workers,
    replacement: replacement as ClusterState['replacement'],
    ...about,
  };
  const measured = {
    shown: {
      balancing: ports ? 'ports' : 'shared',
      ports: ports ?? [],
      primary: PRIMARY,
      acceptBacklog: [],
    },
    find: (id: WorkerId) => handles.get(id),
    countsIn: (slot: number) => places[slot]!.counts ?? new SlotCounts(),
  };
  return takeSnapshot(state, measured, performance.now());
}

function countsWith(...gone: (typeof STATS)[]): SlotCounts {
  const counts = new SlotCounts();
  for (const stats of gone) counts.keep(stats);
  return counts;
}

function workerWith(stats: Partial<typeof STATS>): FakeWorker {
  const worker = new FakeWorker();
  worker.handle.report({ ...STATS, ...stats });
  return worker;
}

describe('a snapshot', () => {
  it('tells all there is to know of a worker', () => {
    const holds = new FakeWorker({ slot: 0, pid: 42, generation: 2 });
    vi.advanceTimersByTime(12_345);
    holds.handle.report(STATS);
    holds.handle.seenAt = performance.now() - 400;
    const counted = { restarts: { crash: 2, hang: 1 }, lastExit: EXIT, abortedRequests: 4 };
    expect(snapshotOf([{ holds, ...counted }])).toEqual({
      acceptBacklog: [],
      balancing: 'shared',
      ports: [],
      desired: 1,
      ready: 1,
      minReady: 'all',
      generation: 4,
      degraded: 0,
      reloads: { completed: 3, aborted: 1, reverted: 0 },
      dismissed: [],
      leader: null,
      primary: PRIMARY,
      workers: [
        {
          slot: 0,
          pid: 42,
          generation: 2,
          state: 'ready',
          uptimeSeconds: 12.345,
          restarts: 3,
          restartsByCause: { crash: 2, hang: 1 },
          lastExit: EXIT,
          degraded: false,
          abortedRequestsTotal: 4,
          heartbeatAgeMs: 400,
          responsive: true,
          ...STATS,
        },
      ],
    });
  });

  it('has null for what a worker has not told yet', () => {
    const { workers } = snapshotOf([{ holds: new FakeWorker({ state: 'starting' }) }]);
    expect(workers[0]).toMatchObject({
      state: 'starting',
      heartbeatAgeMs: null,
      residentMemoryBytes: null,
      heapUsedBytes: null,
      eventLoopUtilization: null,
      eventLoopDelayP99Ms: null,
      threadUtilization: null,
      openConnections: null,
      requestsInFlight: null,
    });
  });

  it('lists a slot that waits for a restart, without a process', () => {
    const snapshot = snapshotOf([{}]);
    expect(snapshot.ready).toBe(0);
    expect(snapshot.workers).toMatchObject([
      {
        slot: 0,
        pid: null,
        generation: 4,
        state: 'exited',
        uptimeSeconds: 0,
        heartbeatAgeMs: null,
        responsive: false,
        requestsTotal: 0,
        cpuSecondsTotal: 0,
        gcSecondsTotal: 0,
      },
    ]);
  });

  it('lists all processes of a slot that is being replaced, the newer one last', () => {
    const { workers, ready } = snapshotOf([
      {
        leaving: new FakeWorker({ pid: 1, state: 'draining' }),
        holds: new FakeWorker({ pid: 2 }),
        candidate: new FakeWorker({ pid: 3, generation: 1, state: 'starting' }),
      },
    ]);
    expect(workers.map(({ pid, state, generation }) => [pid, state, generation])).toEqual([
      [1, 'draining', 0],
      [2, 'ready', 0],
      [3, 'starting', 1],
    ]);
    expect(ready).toBe(1);
  });

  it('counts what is ready and what is degraded, and says which slots are in a crash loop', () => {
    const places: Place[] = (['ready', 'starting', 'draining', 'ready'] as const).map((state) => ({
      holds: new FakeWorker({ state }),
    }));
    places[1] = { ...places[1], ...DEGRADED };
    const snapshot = snapshotOf([...places, {}]);
    expect(snapshot).toMatchObject({ desired: 5, ready: 2, degraded: 1 });
    expect(snapshot.workers.map(({ slot }) => slot)).toEqual([0, 1, 2, 3, 4]);
    expect(snapshot.workers.findIndex(({ degraded }) => degraded)).toBe(1);
  });

  it.each([
    ['ready', 'starting', 1],
    ['ready', 'ready', 1],
    ['draining', 'ready', 1],
    ['draining', 'starting', 0],
    ['starting', 'draining', 0],
    ['draining', 'draining', 0],
  ] as const)(
    'counts a slot once by its worker and its candidate: %s, %s: %d',
    (state, other, ready) => {
      const holds = new FakeWorker({ state });
      const candidate = new FakeWorker({ state: other });
      expect(snapshotOf([{ holds, candidate }]).ready).toBe(ready);
    },
  );

  it('calls a worker unresponsive that owes an answer for 2 s', () => {
    const holds = new FakeWorker();
    const responsive = () => snapshotOf([{ holds }]).workers[0]!.responsive;
    holds.enter('ready', { ping: { seq: 1, sentAt: performance.now() } });
    vi.advanceTimersByTime(1_999);
    expect(responsive()).toBe(true);
    vi.advanceTimersByTime(1);
    expect(responsive()).toBe(false);
    holds.enter('ready');
    expect(responsive()).toBe(true);
  });

  it('crosses the channel unchanged', () => {
    const snapshot = snapshotOf([{ holds: workerWith({ requestsTotal: 5 }) }, {}]);
    expect(JSON.parse(JSON.stringify(snapshot))).toEqual(snapshot);
  });

  it('lists slots that are not wanted any more last, and counts nothing of them', () => {
    const holds = new FakeWorker();
    const dismissed = { holds, ...DEGRADED };
    const snapshot = snapshotOf([{ holds }, dismissed], { desired: 1 });
    expect(snapshot).toMatchObject({
      desired: 1,
      ready: 1,
      degraded: 0,
      dismissed: [],
      workers: [{ slot: 0 }, { slot: 1 }],
    });
  });

  it('tells how connections reach the workers, and on which ports', () => {
    const ports = [3_000, 3_001];
    expect(snapshotOf([], {}, ports)).toMatchObject({ balancing: 'ports', ports });
  });

  it('tells how many clients of a slot were asked to connect again, and its CPU time, over all its workers', () => {
    const counts = countsWith({ ...STATS, rebalancedConnectionsTotal: 4 });
    const holds = workerWith({ rebalancedConnectionsTotal: 3 });
    expect(snapshotOf([{ holds, counts }]).workers[0]).toMatchObject({
      rebalancedConnectionsTotal: 7,
      cpuSecondsTotal: 2 * STATS.cpuSecondsTotal,
      gcSecondsTotal: 2 * STATS.gcSecondsTotal,
    });
  });

  it('keeps what was counted in slots that have no worker any more, and nothing else of them', () => {
    const counts = countsWith({ ...STATS, requestsTotal: 50, rebalancedConnectionsTotal: 6 });
    const place = {
      counts,
      restarts: { oom: 1 },
      lastExit: EXIT,
      abortedRequests: 2,
    } as const;
    const snapshot = snapshotOf([place], { desired: 0 });
    expect(snapshot.dismissed).toEqual([
      {
        slot: 0,
        restartsByCause: { oom: 1 },
        abortedRequestsTotal: 2,
        requestsTotal: 50,
        rebalancedConnectionsTotal: 6,
        logLinesDroppedTotal: STATS.logLinesDroppedTotal,
        droppedConnectionsTotal: 0,
        cpuSecondsTotal: STATS.cpuSecondsTotal,
        gcSecondsTotal: STATS.gcSecondsTotal,
      },
    ]);
    expect(snapshot.workers).toEqual([]);
  });
});
