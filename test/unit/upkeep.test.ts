import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ClusterOptions } from '../../src/options/index.js';
import { Upkeep } from '../../src/primary/upkeep.js';
import type { WorkerState } from '../../src/snapshot/index.js';
import { FakeCluster } from './fake-cluster.js';
import { type FakeWorker, STATS } from './fake-worker.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const MB = 1_000_000;
const SOFT: ClusterOptions = { memory: { softLimitBytes: 200 * MB } };
const HARD: ClusterOptions = { memory: { hardLimitBytes: 400 * MB } };
const BOTH: ClusterOptions = { memory: { ...SOFT.memory, ...HARD.memory } };
const OLD: ClusterOptions = { recycle: { maxAgeMs: 60_000, jitterRatio: 0 } };
const BUSY: ClusterOptions = { recycle: { maxRequests: 1_000, jitterRatio: 0 } };

function start(options: ClusterOptions, workers = 2, state: WorkerState = 'ready') {
  const cluster = new FakeCluster(workers, options, state);
  const resident = new Map<FakeWorker, number | undefined>();
  const measure = (pid: number) =>
    resident.get(cluster.forked.find(({ handle }) => handle.identity.pid === pid)!);
  const { table, succession, emit } = cluster;
  const upkeep = new Upkeep(cluster.options, table, succession, emit, measure);
  return {
    cluster,
    upkeep,
    /** What the kernel says of a worker's memory. */
    holds: (worker: FakeWorker, megabytes: number) => resident.set(worker, megabytes * MB),
    check: () => upkeep.check(performance.now()),
  };
}

const serves = (worker: FakeWorker, requestsTotal: number) =>
  (worker.handle.stats = { ...STATS, requestsTotal });

/** The candidate of the slot takes over and the worker before it leaves. */
function complete(cluster: FakeCluster, index: number): void {
  const old = cluster.current(index);
  cluster.becomeReady(cluster.candidate(index));
  cluster.exit(old);
}

describe('a worker that is above the soft limit from the start', () => {
  function startTooLarge() {
    const started = start(SOFT, 1);
    const worker = started.cluster.current(0);
    started.holds(worker, 250);
    started.upkeep.welcome(worker.handle);
    return started;
  }

  it('is replaced once in a while, not over and over, and that is said once', () => {
    const { cluster, check } = startTooLarge();
    for (let seconds = 0; seconds < 14; seconds += 1) {
      check();
      vi.advanceTimersByTime(1_000);
    }
    expect(cluster.forked).toHaveLength(1);
    vi.advanceTimersByTime(1_000);
    check();
    expect(cluster.forked).toHaveLength(2);
    expect(cluster.events('warning')).toMatchObject([
      { message: expect.stringContaining('softLimitBytes is too low') as string },
    ]);
  });

  it('is replaced at once where it was not: it has grown', () => {
    const { cluster, upkeep, holds, check } = start(SOFT, 1);
    holds(cluster.current(0), 150);
    upkeep.welcome(cluster.current(0).handle);
    holds(cluster.current(0), 250);
    check();
    expect(cluster.forked).toHaveLength(2);
    expect(cluster.events('warning')).toEqual([]);
  });
});

describe('a worker above the soft limit', () => {
  it('is replaced: it serves until the new one is ready (M1)', () => {
    const { cluster, holds, check } = start(SOFT);
    const old = cluster.current(1);
    holds(old, 201);
    check();
    expect(cluster.candidate(1).handle.state).toBe('starting');
    expect([old.handle.state, ...old.signals]).toEqual(['ready']);
    cluster.becomeReady(cluster.candidate(1));
    expect(old.sent('drain')).toMatchObject([{ cause: 'memory' }]);
    expect(cluster.events('worker-replacing')).toEqual([
      {
        worker: old.handle.identity,
        cause: 'memory',
        detail: '201 MB of memory, soft limit 200 MB',
      },
    ]);
  });

  it('is left alone up to the limit', () => {
    const { cluster, holds, check } = start(SOFT);
    holds(cluster.current(0), 200);
    check();
    expect(cluster.forked).toHaveLength(2);
  });

  it('is counted as a restart by memory, once its successor has taken over', () => {
    const { cluster, holds, check } = start(SOFT);
    holds(cluster.current(0), 300);
    check();
    expect([...cluster.slot(0).restarts]).toEqual([]);
    complete(cluster, 0);
    expect([...cluster.slot(0).restarts]).toEqual([['memory', 1]]);
  });

  it('is replaced by one of its own release, not of a newer one', () => {
    const { cluster, holds, check } = start(SOFT);
    cluster.table.release = { ...cluster.table.release, generation: 7 };
    holds(cluster.current(0), 300);
    check();
    expect(cluster.candidate(0).handle.identity.generation).toBe(0);
  });

  it('is replaced once, however often it is looked at', () => {
    const { cluster, holds, check } = start(SOFT);
    holds(cluster.current(0), 300);
    for (let i = 0; i < 10; i += 1) check();
    expect(cluster.forked).toHaveLength(3);
    complete(cluster, 0);
    check();
    expect(cluster.forked).toHaveLength(3);
  });

  it('is known from its own report where the kernel tells nothing', () => {
    const { cluster, check } = start(SOFT);
    cluster.current(0).handle.stats = { ...STATS, residentMemoryBytes: 300 * MB };
    check();
    expect(cluster.slot(0).candidate).toBeDefined();
  });

  it('is known from outside where its own report is old: a hung worker reports nothing', () => {
    const { cluster, holds, check } = start(SOFT);
    cluster.current(0).handle.stats = { ...STATS, residentMemoryBytes: 10 * MB };
    holds(cluster.current(0), 300);
    check();
    expect(cluster.slot(0).candidate).toBeDefined();
  });

  it('is left alone where nothing at all is known of it', () => {
    const { cluster, check } = start(BOTH);
    check();
    expect(cluster.forked).toHaveLength(2);
  });

  it.each(['starting', 'draining'] as const)('is left alone while it is %s', (state) => {
    const { cluster, holds, check } = start(SOFT, 1, state);
    holds(cluster.current(0), 300);
    check();
    expect(cluster.forked).toHaveLength(1);
  });

  it('is left alone where it is on its way out already', () => {
    const { cluster, holds, check } = start(SOFT, 1);
    const old = cluster.current(0);
    cluster.slot(0).retire(old.handle);
    cluster.slot(0).current = cluster.fork(
      cluster.slot(0),
      cluster.slot(0).release,
      'ready',
    ).handle;
    holds(old, 300);
    check();
    expect(cluster.slot(0).candidate).toBeUndefined();
  });
});

describe('workers that are too large or too old together', () => {
  it('are replaced one slot at a time (M3)', () => {
    const { cluster, holds, check } = start(SOFT, 3);
    for (const worker of cluster.forked) holds(worker, 300);
    const candidates = () => cluster.table.slots.filter((slot) => slot.candidate).length;
    for (const index of [0, 1, 2]) {
      check();
      expect(candidates()).toBe(1);
      const old = cluster.current(index);
      cluster.becomeReady(cluster.candidate(index));
      check();
      expect(candidates()).toBe(0);
      cluster.exit(old);
    }
    expect(candidates()).toBe(0);
    expect(cluster.forked).toHaveLength(6);
    expect(cluster.events('worker-replacing')).toHaveLength(3);
  });

  it('are each said to be replaced when their turn has come, not before', () => {
    const { cluster, holds, check } = start(SOFT);
    for (const worker of cluster.forked) holds(worker, 300);
    check();
    const slots = () => cluster.events('worker-replacing').map(({ worker }) => worker.slot);
    expect(slots()).toEqual([0]);
    complete(cluster, 0);
    expect(slots()).toEqual([0, 1]);
  });
});

describe('a worker above the hard limit', () => {
  it.each(['starting', 'ready', 'draining'] as const)('is killed, also while it is %s', (state) => {
    const { cluster, holds, check } = start(BOTH, 1, state);
    const worker = cluster.current(0);
    holds(worker, 401);
    check();
    expect(worker.signals).toEqual(['SIGKILL']);
    expect(worker.handle.condemned).toEqual({
      cause: 'memory',
      detail: 'it held 401 MB of memory, above memory.hardLimitBytes (400 MB), and was killed',
    });
  });

  it('is killed also where it hangs and owes an answer', () => {
    const { cluster, holds, check } = start(HARD, 1);
    const worker = cluster.current(0);
    worker.handle.ping = { seq: 1, sentAt: 0 };
    worker.handle.block = {
      report: { forMs: 1, requests: [], frames: [] },
      since: 0,
    };
    holds(worker, 500);
    check();
    expect(worker.signals).toEqual(['SIGKILL']);
  });

  it('is killed also on its way out, and as a candidate', () => {
    const { cluster, holds, check } = start(BOTH, 1);
    const [slot, old] = [cluster.slot(0), cluster.current(0)];
    slot.retire(old.handle);
    slot.candidate = cluster.fork(slot, slot.release, 'ready').handle;
    for (const worker of cluster.forked) holds(worker, 500);
    check();
    expect(cluster.forked.map(({ signals }) => signals)).toEqual([['SIGKILL'], ['SIGKILL']]);
  });

  it('is left alone up to the limit', () => {
    const { cluster, holds, check } = start(HARD);
    holds(cluster.current(0), 400);
    check();
    expect(cluster.current(0).signals).toEqual([]);
  });

  it('is not replaced as well: its end is a failure, which has a successor of its own', () => {
    const { cluster, holds, check } = start(BOTH);
    holds(cluster.current(0), 401);
    check();
    expect(cluster.forked).toHaveLength(2);
  });

  it('is not recycled as well: it is dead already', () => {
    const { cluster, holds, check } = start({ ...HARD, ...BUSY });
    serves(cluster.current(0), 5_000);
    holds(cluster.current(0), 401);
    check();
    expect(cluster.forked).toHaveLength(2);
  });
});

describe('a worker that has served long enough', () => {
  it('is replaced at its age', () => {
    const { cluster, check } = start(OLD, 1);
    serves(cluster.current(0), 12);
    vi.advanceTimersByTime(59_999);
    check();
    expect(cluster.forked).toHaveLength(1);
    vi.advanceTimersByTime(1);
    check();
    expect(cluster.events('worker-replacing')).toEqual([
      {
        worker: cluster.current(0).handle.identity,
        cause: 'recycle',
        detail: '12 requests in 60 s',
      },
    ]);
    const old = cluster.current(0);
    cluster.becomeReady(cluster.candidate(0));
    expect(old.sent('drain')).toMatchObject([{ cause: 'recycle' }]);
  });

  it('is replaced at its number of requests', () => {
    const { cluster, check } = start(BUSY, 1);
    serves(cluster.current(0), 999);
    check();
    expect(cluster.forked).toHaveLength(1);
    serves(cluster.current(0), 1_000);
    check();
    expect(cluster.slot(0).candidate).toBeDefined();
  });

  it('counts the requests of the worker, not those of its slot', () => {
    const { cluster, check } = start(BUSY, 1);
    serves(cluster.current(0), 1_000);
    check();
    complete(cluster, 0);
    serves(cluster.current(0), 10);
    check();
    expect(cluster.slot(0).totals.requestsTotal).toBeGreaterThan(1_000);
    expect(cluster.forked).toHaveLength(2);
  });

  it('is no failure: nothing is counted', () => {
    const { cluster, check } = start(BUSY, 1);
    serves(cluster.current(0), 1_000);
    check();
    complete(cluster, 0);
    expect(cluster.table.snapshot().workers[0]).toMatchObject({ restarts: 0, restartsByCause: {} });
  });

  it('is replaced for its memory where that is the matter too', () => {
    const { cluster, holds, check } = start({ ...SOFT, ...BUSY }, 1);
    serves(cluster.current(0), 1_000);
    holds(cluster.current(0), 300);
    check();
    expect(cluster.events('worker-replacing')).toMatchObject([{ cause: 'memory' }]);
  });
});

describe('a worker that says itself that it should go', () => {
  const REASON = 'a thread that was to be ended is held by native code';
  const asks = ({ upkeep }: ReturnType<typeof start>, worker: FakeWorker) =>
    upkeep.retire(worker.handle, REASON, performance.now());

  it('is replaced: it serves until the new one is ready, whatever the options are', () => {
    const started = start({});
    const { cluster } = started;
    const old = cluster.current(1);
    asks(started, old);
    expect(cluster.candidate(1).handle.state).toBe('starting');
    expect([old.handle.state, ...old.signals]).toEqual(['ready']);
    expect(cluster.events('worker-replacing')).toEqual([
      { worker: old.handle.identity, cause: 'recycle', detail: REASON },
    ]);
    cluster.becomeReady(cluster.candidate(1));
    expect(old.sent('drain')).toMatchObject([{ cause: 'recycle' }]);
    cluster.exit(old);
    expect([...cluster.slot(1).restarts]).toEqual([]);
  });

  it('is replaced once, however often it says so', () => {
    const started = start({});
    const { cluster } = started;
    const old = cluster.current(0);
    for (let i = 0; i < 3; i += 1) asks(started, old);
    expect(cluster.forked).toHaveLength(3);
    cluster.becomeReady(cluster.candidate(0));
    asks(started, old);
    cluster.exit(old);
    expect(cluster.forked).toHaveLength(3);
  });

  it('is tried again when the replacement has failed, and not before the longest backoff', () => {
    const started = start({}, 1);
    const { cluster } = started;
    asks(started, cluster.current(0));
    cluster.exit(cluster.candidate(0), 'exited with code 1');
    vi.advanceTimersByTime(14_999);
    asks(started, cluster.current(0));
    expect(cluster.forked).toHaveLength(2);
    vi.advanceTimersByTime(1);
    asks(started, cluster.current(0));
    expect(cluster.forked).toHaveLength(3);
  });

  it('is left alone where it is on its way anyway', () => {
    const started = start({}, 1);
    const { cluster } = started;
    const worker = cluster.current(0);
    worker.handle.condemn('memory', 'x');
    asks(started, worker);
    expect(cluster.forked).toHaveLength(1);
  });

  it('is left alone where it is a candidate, or starts', () => {
    const starting = start({}, 1, 'starting');
    asks(starting, starting.cluster.current(0));
    expect(starting.cluster.forked).toHaveLength(1);
    const started = start({}, 1);
    const { cluster } = started;
    asks(started, cluster.current(0));
    asks(started, cluster.candidate(0));
    expect(cluster.forked).toHaveLength(2);
  });
});

describe('a replacement that fails', () => {
  const RETRY_MS = 15_000;

  function failed() {
    const started = start(SOFT, 1);
    const { cluster, holds, check } = started;
    holds(cluster.current(0), 300);
    check();
    cluster.exit(cluster.candidate(0), 'exited with code 1');
    return started;
  }

  it('leaves the worker in its place, and is warned of with the next try', () => {
    const { cluster } = failed();
    expect(cluster.current(0).handle.state).toBe('ready');
    expect(cluster.events('warning')).toEqual([
      {
        worker: cluster.current(0).handle.identity,
        message: `is not replaced (cause=memory), next try in ${RETRY_MS} ms: exited with code 1`,
      },
    ]);
    expect([...cluster.slot(0).restarts]).toEqual([]);
  });

  it('is not tried again before the longest backoff is over: it must not become a storm of forks', () => {
    const { cluster, check } = failed();
    for (let ms = 1_000; ms < RETRY_MS; ms += 1_000) {
      vi.advanceTimersByTime(1_000);
      check();
    }
    expect(cluster.forked).toHaveLength(2);
    vi.advanceTimersByTime(1_000);
    check();
    expect(cluster.forked).toHaveLength(3);
  });

  it('does not hold up the other slots', () => {
    const { cluster, holds, check } = start(SOFT, 2);
    for (const worker of cluster.forked) holds(worker, 300);
    check();
    cluster.exit(cluster.candidate(0));
    expect(cluster.slot(1).candidate).toBeDefined();
  });

  it('does not save the worker from the hard limit', () => {
    const { cluster, holds, check } = start(BOTH, 1);
    holds(cluster.current(0), 300);
    check();
    cluster.exit(cluster.candidate(0));
    holds(cluster.current(0), 500);
    check();
    expect(cluster.current(0).signals).toEqual(['SIGKILL']);
  });
});

describe('upkeep', () => {
  it.each([
    [{}, false],
    [{ recycle: { jitterRatio: 0.5 } }, false],
    [SOFT, true],
    [HARD, true],
    [OLD, true],
    [BUSY, true],
  ] as const)('with %j is needed: %s', (options, needed) => {
    expect(start(options).upkeep.needed).toBe(needed);
  });
});
