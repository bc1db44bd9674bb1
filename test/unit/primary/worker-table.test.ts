import { closeSync, openSync } from 'node:fs';
import net from 'node:net';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { inodeOf } from '../../../src/contract/process/accept-queue.js';
import type { ClusterSnapshot, WorkerExit } from '../../../src/contract/snapshot/types.js';
import type { ClusterState, Slot, Worker, WorkerId } from '../../../src/decide/cluster-state.js';
import { NO_FAILURES } from '../../../src/decide/policies/failure.policy.js';
import { newSlot } from '../../../src/decide/scaling.js';
import { newCluster } from '../../../src/decide/transition.js';
import type { BoundSocket } from '../../../src/primary/listening/bound-socket.js';
import { acceptBacklog, totalsOf, WorkerTable } from '../../../src/primary/worker-table.js';
import { FakeCluster } from '../support/fake-cluster.js';
import { FakeWorker, knownWorker, STATS } from '../support/fake-worker.js';

const LISTENING = { balancing: 'ports' as const, ports: [3_000, 3_001], sockets: [] };
const RELEASE = { generation: 4, script: '/app/main.js', cwd: '/app' };
const EXIT: WorkerExit = {
  cause: 'hang',
  code: null,
  signal: 'SIGKILL',
  at: '2026-01-01T00:00:00.000Z',
};
const DEGRADED = { failures: { ...NO_FAILURES, degraded: true } };

/** A slot and its processes: oldest first. `current` serves, or will serve. */
interface Place extends Partial<Slot> {
  readonly leaving?: FakeWorker;
  readonly current?: FakeWorker;
  readonly candidate?: FakeWorker;
}

/** The snapshot of a cluster with these slots, numbered from 0. */
function snapshotOf(places: readonly Place[], about: Partial<ClusterState> = {}): ClusterSnapshot {
  const cluster = newCluster(places.length, RELEASE, 0, 0);
  const table = new WorkerTable(cluster, LISTENING, () => 9);
  const workers = new Map<WorkerId, Worker>();
  const add = (worker: FakeWorker | undefined, slot: number): WorkerId | undefined => {
    if (worker === undefined) return undefined;
    const id = workers.size + 1;
    const known = { ...worker.handle.known()!, id, slot };
    workers.set(id, known);
    table.add(id, worker.handle);
    return id;
  };
  const slots = places.map((place, index) => {
    const candidate = add(place.candidate, index);
    const replacement = candidate && { slot: index, phase: 'booting', candidate };
    const worker = add(place.current, index);
    add(place.leaving, index);
    return { ...newSlot(index, RELEASE), ...place, worker, replacement };
  });
  const reloads = { completed: 3, aborted: 1, reverted: 0 };
  const state = { ...cluster, minReady: 'all' as const, reloads, slots, workers };
  table.update({ ...state, ...about } as ClusterState);
  return table.snapshot();
}

describe('a snapshot', () => {
  beforeEach(() => vi.useFakeTimers());

  it('has everything that is known about a worker, and survives the channel', () => {
    const current = new FakeWorker({ slot: 0, pid: 42, generation: 2 });
    vi.advanceTimersByTime(12_345);
    current.handle.report(STATS);
    current.handle.seenAt = performance.now() - 400;
    const counted = { restarts: { crash: 2, hang: 1 }, lastExit: EXIT, abortedRequests: 4 };
    const snapshot = snapshotOf([{ current, ...counted }]);
    expect(snapshot).toEqual({
      acceptBacklog: [],
      balancing: 'ports',
      ports: [3_000, 3_001],
      desired: 1,
      ready: 1,
      minReady: 'all',
      generation: 4,
      degraded: 0,
      reloads: { completed: 3, aborted: 1, reverted: 0 },
      dismissed: [],
      leader: null,
      primary: expect.objectContaining({ pid: process.pid, logLinesDroppedTotal: 9 }) as object,
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
    expect(JSON.parse(JSON.stringify(snapshot.workers))).toEqual(snapshot.workers);
  });

  it('has null for what a worker has not reported yet, and a slot that waits for a restart', () => {
    const { ready, workers } = snapshotOf([
      { current: new FakeWorker({ state: 'starting' }) },
      { ...DEGRADED },
    ]);
    expect(ready).toBe(0);
    expect(workers).toMatchObject([
      {
        state: 'starting',
        heartbeatAgeMs: null,
        residentMemoryBytes: null,
        requestsInFlight: null,
      },
      {
        slot: 1,
        pid: null,
        generation: 4,
        state: 'exited',
        uptimeSeconds: 0,
        responsive: false,
        degraded: true,
        requestsTotal: 0,
      },
    ]);
  });

  it('lists all processes of a slot that is being replaced, the newest last', () => {
    const { workers } = snapshotOf([
      {
        leaving: new FakeWorker({ pid: 1, state: 'draining' }),
        current: new FakeWorker({ pid: 2 }),
        candidate: new FakeWorker({ pid: 3, generation: 1, state: 'starting' }),
      },
    ]);
    expect(workers.map(({ pid, state, generation }) => [pid, state, generation])).toEqual([
      [1, 'draining', 0],
      [2, 'ready', 0],
      [3, 'starting', 1],
    ]);
  });

  it.each([
    ['ready', 'starting', 1],
    ['ready', 'ready', 1],
    ['draining', 'ready', 1],
    ['draining', 'draining', 0],
  ] as const)('counts a slot once, with a %s worker and a %s candidate', (state, other, ready) => {
    const place = {
      current: new FakeWorker({ state }),
      candidate: new FakeWorker({ state: other }),
    };
    expect(snapshotOf([place]).ready).toBe(ready);
  });

  it('counts nothing of surplus slots: they are listed until their worker is gone, then dismissed', () => {
    const current = new FakeWorker();
    const counted = { ...DEGRADED, restarts: { oom: 1 }, abortedRequests: 2 };
    const places = [{ current }, { current, ...counted }, counted];
    expect(snapshotOf(places, { desired: 1 })).toMatchObject({
      desired: 1,
      ready: 1,
      degraded: 0,
      workers: [{ slot: 0 }, { slot: 1 }],
      dismissed: [{ slot: 2, restartsByCause: { oom: 1 }, abortedRequestsTotal: 2 }],
    });
  });

  it('says how many workers must be ready: one, until a worker has said otherwise', () => {
    const cluster = new FakeCluster(2, {}, 'starting');
    const minReady = () => cluster.supervisor.snapshot().minReady;
    expect(minReady()).toBe(1);
    cluster.newest(0).becomeReady({ minReady: 'all' });
    cluster.newest(1).becomeReady();
    expect(minReady()).toBe('all');
  });

  it('keeps all counts of a slot, in whatever way its workers end', () => {
    const cluster = new FakeCluster(2, { hangTimeoutMs: false });
    const requests = () => {
      const { workers, dismissed } = cluster.supervisor.snapshot();
      const counts = [...workers, ...dismissed].filter(({ slot }) => slot === 1);
      return counts.map(({ requestsTotal }) => requestsTotal);
    };
    for (const [requestsTotal, counted] of [
      [70, 70],
      [5, 75],
    ] as const) {
      cluster.newest(1).reports({ ...STATS, requestsTotal });
      expect(requests()).toEqual([counted]);
      void cluster.supervisor.scale(1, 'test');
      cluster.newest(1).exit({ code: 0 });
      expect(requests()).toEqual([counted]);
      void cluster.supervisor.scale(2, 'test');
      cluster.newest(1).becomeReady();
    }
    cluster.newest(1).reports({ ...STATS, requestsTotal: 1 });
    cluster.newest(1).exit({ signal: 'SIGABRT' });
    expect(requests()).toEqual([76]);
  });
});

it('a worker is found while the effects of its exit are carried out', () => {
  const [first, second] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
  const state = newCluster(2, RELEASE, 0, 0);
  const knows = (...ids: number[]) => ({
    ...state,
    workers: new Map(ids.map((id) => [id, knownWorker({ id, slot: id - 1, state: 'draining' })])),
  });
  const table = new WorkerTable(knows(1, 2), LISTENING, () => 4);
  table.add(1, first.handle);
  table.add(2, second.handle);
  table.update(knows(2));
  expect(table.remove(1)).toBe(first.handle);
  expect([first.handle.state, second.handle.state]).toEqual(['exited', 'draining']);
  expect([table.workers, table.find(1)]).toEqual([[second.handle], first.handle]);
  table.update(knows(2));
  expect([table.find(1), table.find(2)]).toEqual([undefined, second.handle]);
});

it('the CPU time of a slot does not fall by the last bit of a double', () => {
  // 0.1 + 0.2 + 0.3 is 0.6000000000000001 or 0.6, as they are grouped.
  const [a, b, c] = [0.1, 0.2, 0.3].map((cpuSecondsTotal) => ({ ...STATS, cpuSecondsTotal }));
  for (const ended of [totalsOf([a, b]), totalsOf([b, a])]) {
    expect(totalsOf([ended, c, undefined]).cpuSecondsTotal).toBe(0.6);
  }
  expect(totalsOf([totalsOf([b, c]), a]).cpuSecondsTotal).toBe(0.6);
  const exact = { ...STATS, cpuSecondsTotal: 1.234_567, gcSecondsTotal: 0.000_001 };
  expect(totalsOf([exact])).toMatchObject({
    cpuSecondsTotal: 1.234_567,
    gcSecondsTotal: 0.000_001,
  });
});

describe.runIf(process.platform === 'linux')('the accept backlog', () => {
  async function listening() {
    const server = net.createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await new Promise((resolve) => server.once('listening', resolve));
    const { fd } = (server as unknown as { _handle: { fd: number } })._handle;
    const socket = { inode: inodeOf(fd), url: 'http://127.0.0.1:3000' } as BoundSocket;
    return { socket, port: (server.address() as net.AddressInfo).port };
  }

  it('counts the connections that no process has accepted, by address', async () => {
    const [one, other] = [await listening(), await listening()];
    for (const port of [one.port, one.port, one.port, other.port]) {
      const client = net.connect(port, '127.0.0.1').on('error', () => {});
      onTestFinished(() => void client.destroy());
    }
    // Node connects in the next tick. Over loopback, the connection exists when connect(2) returns.
    await new Promise<void>((resolve) => process.nextTick(resolve));
    const { url } = one.socket;
    expect(acceptBacklog({ sockets: [one.socket] })).toEqual([{ socket: url, connections: 3 }]);
    // With reuse-port, several sockets have one address.
    expect(acceptBacklog({ sockets: [one.socket, other.socket] })).toEqual([
      { socket: url, connections: 4 },
    ]);
  });

  it('leaves out a socket that has no queue', () => {
    const file = openSync('/dev/null', 'r');
    onTestFinished(() => closeSync(file));
    const unix = { inode: inodeOf(file), url: 'unix:/run/app.sock' } as BoundSocket;
    const unbound = { inode: '4711', url: 'http://127.0.0.1:3000' } as BoundSocket;
    expect(acceptBacklog({ sockets: [unix, unbound] })).toEqual([]);
  });
});
