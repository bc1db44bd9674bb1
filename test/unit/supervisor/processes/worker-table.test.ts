import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { newCluster } from '../../../../src/supervisor/decide/transition.js';
import { WorkerMap } from '../../../../src/supervisor/decide/worker/worker-map.js';
import { WorkerTable } from '../../../../src/supervisor/processes/worker-table.js';
import { FakeCluster, METER, PRIMARY } from '../../support/fake-cluster.js';
import { FakeWorker, knownWorker, STATS } from '../../support/fake-worker.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const LISTENING = { balancing: 'shared', ports: [], sockets: [] } as const;
const RELEASE = { generation: 4, script: '/app/main.js', cwd: '/app' };
const start = (workers: number) => new FakeCluster(workers, { hangTimeoutMs: false });

/** What is listed of each slot: its index, once for each process; or that it is dismissed. */
function whereabouts(cluster: FakeCluster) {
  const { workers, dismissed, ready, desired } = cluster.supervisor.snapshot();
  return { desired, ready, listed: slotsOf(workers), dismissed: slotsOf(dismissed) };
}

const slotsOf = (all: readonly { slot: number }[]) => all.map(({ slot }) => slot);

/** Each slot gets a worker of a new release. */
function reloadAll(cluster: FakeCluster): void {
  void cluster.supervisor.reload('test');
  for (const { slot } of cluster.supervisor.snapshot().workers.filter(({ pid }) => pid !== null)) {
    if (cluster.serving(slot) === cluster.newest(slot)) continue;
    cluster.newest(slot).becomeReady();
    vi.advanceTimersByTime(1_000);
    const old = cluster.serving(slot);
    cluster.newest(slot).answerCheck(true);
    old.exit({ code: 0 });
  }
}

describe('the table of workers', () => {
  it('knows what the core knows of each process, as long as that knows it', () => {
    const [first, second] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
    const state = newCluster(2, RELEASE, 0, 0);
    const knows = (...ids: number[]) => ({
      ...state,
      workers: new WorkerMap(ids.map((id) => knownWorker({ id, slot: id - 1, state: 'draining' }))),
    });
    const table = new WorkerTable(knows(1, 2), LISTENING, METER);
    table.add(1, first.handle);
    table.add(2, second.handle);
    expect(table.workers).toEqual([first.handle, second.handle]);
    expect(first.handle.known()).toBe(table.state.workers.get(1));

    table.update(knows(2));
    expect(table.remove(1)).toBe(first.handle);
    expect([first.handle.state, second.handle.state]).toEqual(['exited', 'draining']);
    expect(table.workers).toEqual([second.handle]);
    // What is to be done because of its exit is done to it.
    expect(table.find(1)).toBe(first.handle);
    table.update(knows(2));
    expect([table.find(1), table.find(2)]).toEqual([undefined, second.handle]);
  });
});

describe('a cluster that grows', () => {
  it('has its new slots run what the others were last reloaded with, those that come back too', () => {
    const cluster = start(2);
    void cluster.supervisor.scale(1, 'test');
    cluster.newest(1).exit({ code: 0 });
    reloadAll(cluster);
    void cluster.supervisor.scale(3, 'test');
    expect(cluster.picture).toEqual(['0: gen=1 ready', '1: gen=1 starting', '2: gen=1 starting']);
  });

  it('has them run what the others do where the last reload failed', () => {
    const cluster = start(1);
    void cluster.supervisor.reload('test');
    cluster.newest(0).exit();
    void cluster.supervisor.scale(2, 'test');
    expect(cluster.picture).toEqual(['0: gen=0 ready', '1: gen=0 starting']);
  });
});

describe('a cluster that shrinks', () => {
  it('lists a slot until its worker is gone, then as dismissed, and counts it as neither', () => {
    const cluster = start(3);
    expect(whereabouts(cluster)).toEqual({
      desired: 3,
      ready: 3,
      listed: [0, 1, 2],
      dismissed: [],
    });
    void cluster.supervisor.scale(1, 'test');
    expect(cluster.workers()).toHaveLength(3);
    expect(whereabouts(cluster)).toEqual({
      desired: 1,
      ready: 1,
      listed: [0, 1, 2],
      dismissed: [],
    });
    cluster.newest(2).exit({ code: 0 });
    expect(whereabouts(cluster)).toEqual({ desired: 1, ready: 1, listed: [0, 1], dismissed: [2] });
    cluster.newest(1).exit({ code: 0 });
    expect(whereabouts(cluster)).toEqual({ desired: 1, ready: 1, listed: [0], dismissed: [1, 2] });
    void cluster.supervisor.scale(3, 'test');
    expect(whereabouts(cluster)).toEqual({
      desired: 3,
      ready: 1,
      listed: [0, 1, 2],
      dismissed: [],
    });
  });
});

describe('the snapshot of a table', () => {
  it('has what the primary measures of itself, as it is then', () => {
    let stats = PRIMARY;
    const table = new WorkerTable(newCluster(1, RELEASE, 0, 0), LISTENING, {
      stats: () => stats,
    });
    expect(table.snapshot().primary).toEqual(PRIMARY);
    stats = { ...PRIMARY, cpuSecondsTotal: 9 };
    expect(table.snapshot().primary).toEqual(stats);
  });

  it('says how many workers must be ready: one, until a worker has said otherwise', () => {
    const cluster = new FakeCluster(2, {}, 'starting');
    const minReady = () => cluster.supervisor.snapshot().minReady;
    expect(minReady()).toBe(1);
    cluster.newest(0).becomeReady({ minReady: 'all' });
    cluster.newest(1).becomeReady();
    expect(minReady()).toBe('all');
  });
});

describe('what was counted in a slot', () => {
  it('is in every snapshot, wherever the slot is by then: no total ever falls, and nothing is forgotten', () => {
    const cluster = start(2);
    cluster.restart(1, { signal: 'SIGABRT' }).becomeReady();
    const worker = cluster.newest(1);
    worker.reports({ ...STATS, requestsTotal: 70 });
    const counted = () => {
      const { workers, dismissed } = cluster.supervisor.snapshot();
      const counts = [...workers, ...dismissed].filter(({ slot }) => slot === 1);
      return counts.map(({ requestsTotal }) => requestsTotal);
    };
    expect(counted()).toEqual([70]);
    void cluster.supervisor.scale(1, 'test');
    expect(counted()).toEqual([70]);
    const cutOff = { destroyedConnections: 2, abortedRequests: 2 };
    const nothing = { destroyedWebSockets: 0, hookError: null };
    worker.say({ type: 'drained', report: { ...nothing, ...cutOff } });
    worker.exit({ code: 0 });
    expect(counted()).toEqual([70]);
    void cluster.supervisor.scale(2, 'test');
    expect(cluster.slot(1)).toMatchObject([
      {
        state: 'starting',
        requestsTotal: 70,
        abortedRequestsTotal: 2,
        restarts: 1,
        restartsByCause: { oom: 1 },
        lastExit: { cause: 'scale', code: 0, signal: null },
      },
    ]);
  });
});
