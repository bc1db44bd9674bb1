import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { WorkerTable } from '../../src/primary/worker-table.js';
import { EXIT, FakeCluster, LISTENING, METER, PRIMARY, releaseOf } from './fake-cluster.js';
import { STATS } from './fake-worker.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const indexes = (slots: readonly { index: number }[]) => slots.map(({ index }) => index);

describe('the table of workers', () => {
  it('has a slot for each worker there should be, of the release that it is given', () => {
    const table = new WorkerTable(3, LISTENING, releaseOf(4), METER);
    expect(table).toMatchObject({ desired: 3, generation: 4 });
    expect(indexes(table.slots)).toEqual([0, 1, 2]);
    expect(table.slots.map(({ release }) => release)).toEqual(Array(3).fill(releaseOf(4)));
    expect([table.workers, table.surplus]).toEqual([[], []]);
  });

  it('finds the slot of a worker, also where that is not wanted any more', () => {
    const { table, forked } = new FakeCluster(2);
    const worker = forked[1]!.handle;
    const slot = table.slots[1];
    table.resize(1);
    expect(table.slotOf(worker)).toBe(slot);
    expect([table.wants(table.slots[0]!), table.wants(slot!)]).toEqual([true, false]);
  });

  it('knows every process, also of slots that are not wanted any more', () => {
    const { table, forked } = new FakeCluster(3);
    table.resize(1);
    expect(table.workers).toEqual(forked.map(({ handle }) => handle));
  });
});

describe('a table that grows', () => {
  it('says which slots are new, and has them run what the others were last reloaded with', () => {
    const table = new WorkerTable(1, LISTENING, releaseOf(0), METER);
    table.release = releaseOf(2);
    const added = table.resize(3);
    expect(indexes(added)).toEqual([1, 2]);
    expect(added.map(({ release }) => release)).toEqual([releaseOf(2), releaseOf(2)]);
    expect(table.slots[0]!.release).toEqual(releaseOf(0));
  });

  it('has a slot that comes back run the new release too', () => {
    const table = new WorkerTable(2, LISTENING, releaseOf(0), METER);
    const slot = table.slots[1];
    table.resize(1);
    table.release = releaseOf(5);
    expect(table.resize(2)).toEqual([slot]);
    expect(slot!.release).toEqual(releaseOf(5));
  });
});

describe('a table that shrinks', () => {
  it('adds nothing, and wants the first slots', () => {
    const table = new WorkerTable(4, LISTENING, releaseOf(0), METER);
    expect(table.resize(2)).toEqual([]);
    expect(table.desired).toBe(2);
    expect(indexes(table.slots)).toEqual([0, 1]);
  });

  it('has as surplus the slots beyond that whose workers have not left yet', () => {
    const { table, forked } = new FakeCluster(3);
    table.resize(1);
    expect(indexes(table.surplus)).toEqual([1, 2]);
    table.slotOf(forked[2]!.handle).remove(forked[2]!.handle, EXIT);
    expect(indexes(table.surplus)).toEqual([1]);
  });

  it('lists the surplus in the snapshot, and does not count it as ready', () => {
    const { table, forked } = new FakeCluster(2);
    table.resize(1);
    const { desired, ready, workers } = table.snapshot();
    expect([desired, ready, indexes(workers.map(({ slot: index }) => ({ index })))]).toEqual([
      1,
      1,
      [0, 1],
    ]);
    table.slotOf(forked[1]!.handle).remove(forked[1]!.handle, EXIT);
    expect(table.snapshot().workers).toHaveLength(1);
  });

  it('has a slot as surplus until its worker is gone, then as dismissed, and once only', () => {
    const { table, forked } = new FakeCluster(2);
    const whereabouts = () => [table.slots, table.surplus, table.dismissed].map(indexes);
    expect(whereabouts()).toEqual([[0, 1], [], []]);
    table.resize(1);
    expect(whereabouts()).toEqual([[0], [1], []]);
    table.slotOf(forked[1]!.handle).remove(forked[1]!.handle, EXIT);
    expect(whereabouts()).toEqual([[0], [], [1]]);
    table.resize(2);
    expect(whereabouts()).toEqual([[0, 1], [], []]);
  });
});

describe('the snapshot of a table', () => {
  it('has what the primary measures of itself, as it is then', () => {
    let stats = PRIMARY;
    const table = new WorkerTable(1, LISTENING, releaseOf(0), { stats: () => stats });
    expect(table.snapshot().primary).toEqual(PRIMARY);
    stats = { ...PRIMARY, cpuSecondsTotal: 9 };
    expect(table.snapshot().primary).toEqual(stats);
  });

  it('says how many workers must be ready: one, until a worker has said otherwise', () => {
    const table = new WorkerTable(2, LISTENING, releaseOf(0), METER);
    expect(table.snapshot().minReady).toBe(1);
    table.minReady = 'all';
    expect(table.snapshot().minReady).toBe('all');
  });
});

describe('what was counted in a slot', () => {
  it('is in every snapshot, wherever the slot is by then: no total ever falls', () => {
    const { table, forked } = new FakeCluster(2);
    const { handle } = forked[1]!;
    handle.stats = { ...STATS, requestsTotal: 70 };
    const counted = () => {
      const { workers, dismissed } = table.snapshot();
      const counts = [...workers, ...dismissed].filter(({ slot }) => slot === 1);
      return counts.map(({ requestsTotal }) => requestsTotal);
    };
    expect(counted()).toEqual([70]);
    table.resize(1);
    expect(counted()).toEqual([70]);
    table.slotOf(handle).remove(handle, EXIT);
    expect(counted()).toEqual([70]);
    table.resize(2);
    expect(counted()).toEqual([70]);
  });

  it('is there again when the slot is: scaling down forgets nothing', () => {
    const { table, forked } = new FakeCluster(2);
    const { handle } = forked[1]!;
    const slot = table.slotOf(handle);
    handle.stats = { ...STATS, requestsTotal: 70 };
    handle.drain = {
      durationMs: 1,
      unacceptedConnections: 0,
      destroyedConnections: 2,
      destroyedWebSockets: 0,
      abortedRequests: 2,
      hookError: null,
    };
    slot.countRestart('hang');
    table.resize(1);
    slot.remove(handle, EXIT);
    table.resize(2);
    expect(table.snapshot().workers[1]).toMatchObject({
      pid: null,
      requestsTotal: 70,
      abortedRequestsTotal: 2,
      restarts: 1,
      restartsByCause: { hang: 1 },
      lastExit: EXIT,
    });
  });
});
