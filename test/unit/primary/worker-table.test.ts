import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { newCluster } from '../../../src/decide/transition.js';
import { WorkerMap } from '../../../src/decide/cluster-state.js';
import { SlotCounts } from '../../../src/primary/take-snapshot.js';
import { WorkerTable } from '../../../src/primary/worker-table.js';
import { FakeCluster } from '../support/fake-cluster.js';
import { FakeWorker, knownWorker, STATS } from '../support/fake-worker.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const LISTENING = { balancing: 'shared' as const, ports: [], sockets: [] };
const RELEASE = { generation: 4, script: '/app/main.js', cwd: '/app' };
const start = (workers: number) => new FakeCluster(workers, { hangTimeoutMs: false });

/** What is listed of each slot: its index, once for each process; or that it is dismissed. */
function whereabouts(cluster: FakeCluster) {
  const { workers, dismissed, ready, desired } = cluster.supervisor.snapshot();
  return { desired, ready, listed: slotsOf(workers), dismissed: slotsOf(dismissed) };
}

const slotsOf = (all: readonly { slot: number }[]) => all.map(({ slot }) => slot);

describe('the table of workers', () => {
  it('knows what the core knows of each process, as long as that knows it', () => {
    const [first, second] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
    const state = newCluster(2, RELEASE, 0, 0);
    const knows = (...ids: number[]) => ({
      ...state,
      workers: new WorkerMap(ids.map((id) => knownWorker({ id, slot: id - 1, state: 'draining' }))),
    });
    const table = new WorkerTable(knows(1, 2), LISTENING, () => 4);
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
    let dropped = 4;
    const table = new WorkerTable(newCluster(1, RELEASE, 0, 0), LISTENING, () => dropped);
    const primary = { pid: process.pid, cpuSecondsTotal: expect.any(Number) as number };
    expect(table.snapshot().primary).toMatchObject({ ...primary, logLinesDroppedTotal: 4 });
    dropped = 9;
    expect(table.snapshot().primary).toMatchObject({ ...primary, logLinesDroppedTotal: 9 });
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
    vi.setSystemTime('2026-01-01T00:00:00Z');
    const cluster = start(2);
    cluster.restart(1, { signal: 'SIGABRT' }).becomeReady();
    const requests = () => {
      const { workers, dismissed } = cluster.supervisor.snapshot();
      const counts = [...workers, ...dismissed].filter(({ slot }) => slot === 1);
      return counts.map(({ requestsTotal }) => requestsTotal);
    };
    /** Its worker leaves and cuts off requests; then the slot is wanted again. */
    const leave = (requestsTotal: number, abortedRequests: number, counted: number) => {
      const worker = cluster.newest(1);
      worker.reports({ ...STATS, requestsTotal });
      expect(requests()).toEqual([counted]);
      void cluster.supervisor.scale(1, 'test');
      expect(requests()).toEqual([counted]);
      worker.reportDrain({ destroyedConnections: abortedRequests, abortedRequests });
      worker.exit({ code: 0 });
      expect(requests()).toEqual([counted]);
      void cluster.supervisor.scale(2, 'test');
      cluster.newest(1).becomeReady();
    };
    leave(70, 2, 70);
    leave(5, 3, 75);
    expect(cluster.slot(1)).toMatchObject([
      {
        requestsTotal: 75,
        abortedRequestsTotal: 5,
        restarts: 1,
        restartsByCause: { oom: 1 },
        lastExit: { cause: 'scale', code: 0, signal: null, at: '2026-01-01T00:00:00.100Z' },
      },
    ]);
  });
});

describe('the CPU time of a slot', () => {
  it('does not fall by the last bit of a double when a worker dies before another', () => {
    // 0.1 + 0.2 + 0.3 is 0.6000000000000001 or 0.6, as they are grouped.
    const workers = [0.1, 0.2, 0.3].map((seconds) => ({ ...STATS, cpuSecondsTotal: seconds }));
    const sums = workers.flatMap((first) => {
      const counts = new SlotCounts();
      const totals = [counts.totals(workers)];
      const left = new Set(workers);
      for (const worker of [first, ...workers.filter((each) => each !== first)]) {
        left.delete(worker);
        counts.keep(worker);
        totals.push(counts.totals([...left]));
      }
      return totals.map(({ cpuSecondsTotal }) => cpuSecondsTotal);
    });
    expect(new Set(sums)).toEqual(new Set([0.6]));
  });

  it('is exact to the microsecond, and 0 for a worker that has reported nothing', () => {
    const counts = new SlotCounts();
    counts.keep(undefined);
    expect(counts.totals([undefined])).toMatchObject({ cpuSecondsTotal: 0, requestsTotal: 0 });
    const used = { ...STATS, cpuSecondsTotal: 1.234_567, gcSecondsTotal: 0.000_001 };
    const { cpuSecondsTotal, gcSecondsTotal } = used;
    expect(counts.totals([used])).toMatchObject({ cpuSecondsTotal, gcSecondsTotal });
  });
});
