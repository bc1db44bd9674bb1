import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ClusterOptions } from '../../../../src/contract/options/index.js';
import { FakeCluster } from '../../support/fake-cluster.js';
import { FakeWorker, STATS } from '../../support/fake-worker.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const MB = 1_000_000;
const SOFT: ClusterOptions = { memory: { softLimitBytes: 200 * MB } };
const HARD: ClusterOptions = { memory: { hardLimitBytes: 400 * MB } };
const BOTH: ClusterOptions = { memory: { ...SOFT.memory, ...HARD.memory } };
const OLD: ClusterOptions = { recycle: { maxAgeMs: 60_000 } };
const BUSY: ClusterOptions = { recycle: { maxRequests: 1_000 } };

/** Nobody is judged by the pings that nobody answers here. */
const start = (options: ClusterOptions, workers = 2, state?: 'starting') =>
  new FakeCluster(workers, { hangTimeoutMs: false, ...options }, state);

/** The limits are looked at once a second. */
const check = () => vi.advanceTimersByTime(1_000);

const holds = (worker: FakeWorker, megabytes: number) =>
  worker.reports({ residentMemoryBytes: megabytes * MB });
const serves = (worker: FakeWorker, requestsTotal: number) => worker.reports({ requestsTotal });

describe('a worker that is above the soft limit from the start', () => {
  function startWith(megabytes: number) {
    const cluster = start(SOFT, 1, 'starting');
    holds(cluster.newest(0), megabytes);
    cluster.newest(0).becomeReady();
    return cluster;
  }

  it('is replaced once in a while, not over and over, and that is said once', () => {
    const cluster = startWith(250);
    vi.advanceTimersByTime(14_999);
    expect(cluster.forked).toHaveLength(1);
    vi.advanceTimersByTime(1);
    expect(cluster.forked).toHaveLength(2);
    expect(cluster.events('warning')).toMatchObject([
      { message: expect.stringContaining('softLimitBytes is too low') as string },
    ]);
  });

  it('is replaced at once where it was not: it has grown', () => {
    const cluster = startWith(150);
    holds(cluster.newest(0), 250);
    check();
    expect(cluster.forked).toHaveLength(2);
    expect(cluster.events('warning')).toEqual([]);
  });
});

describe('a worker is replaced, and serves until the new one is ready', () => {
  /** Brings a worker just below a limit, or to it. */
  type Act = (worker: FakeWorker) => void;

  it.each<[cause: 'memory' | 'recycle', detail: string, ClusterOptions, ...acts: [Act, Act]]>([
    [
      'memory',
      '201 MB of memory, soft limit 200 MB',
      SOFT,
      (worker) => holds(worker, 200),
      (worker) => holds(worker, 201),
    ],
    [
      'recycle',
      '12 requests in 60 s',
      OLD,
      (worker) => {
        serves(worker, 12);
        vi.advanceTimersByTime(58_000);
      },
      () => {},
    ],
    [
      'recycle',
      '1000 requests in 2 s',
      BUSY,
      (worker) => serves(worker, 999),
      (worker) => serves(worker, 1_000),
    ],
  ])('by %s: %s', (cause, detail, options, notEnough, enough) => {
    const cluster = start(options, 1);
    const old = cluster.newest(0);
    notEnough(old);
    check();
    expect(cluster.forked).toHaveLength(1);
    enough(old);
    check();
    expect([old.handle.state, ...old.signals]).toEqual(['ready']);
    const candidate = cluster.newest(0);
    expect(candidate.handle.state).toBe('starting');
    expect(cluster.events('worker-replacing')).toEqual([
      { worker: old.handle.identity, cause, detail },
    ]);
    candidate.becomeReady();
    expect(old.sent('drain')).toMatchObject([{ cause }]);
    // Its code is the same and has nothing to prove.
    expect(candidate.sent('check')).toEqual([]);
  });

  it('once, however often it is above the soft limit', () => {
    const cluster = start(SOFT);
    const old = cluster.newest(0);
    holds(old, 300);
    for (let i = 0; i < 10; i += 1) check();
    expect(cluster.forked).toHaveLength(3);
    cluster.newest(0).becomeReady();
    check();
    old.exit({ code: 0 });
    check();
    expect(cluster.forked).toHaveLength(3);
  });

  it('not before the longest backoff where that failed: it must not become a storm of forks', () => {
    const cluster = start(SOFT, 1);
    holds(cluster.newest(0), 300);
    check();
    const since = performance.now();
    cluster.newest(0).exit();
    vi.advanceTimersByTime(14_999);
    expect(cluster.forked).toHaveLength(2);
    vi.advanceTimersByTime(1);
    expect([cluster.forked.length, performance.now() - since]).toEqual([3, 15_000]);
  });
});

describe('a worker above the soft limit', () => {
  it('is counted as a restart by memory, once its successor has taken over', () => {
    const cluster = start(SOFT);
    holds(cluster.newest(0), 300);
    check();
    expect(cluster.slot(0)[0]!.restartsByCause).toEqual({});
    cluster.succeed(0);
    expect(cluster.slot(0)[0]!.restartsByCause).toEqual({ memory: 1 });
  });

  it('is counted once if it is killed at the hard limit before its successor is ready', () => {
    const cluster = start(BOTH);
    const old = cluster.newest(0);
    holds(old, 300);
    check();
    holds(old, 401);
    check();
    old.exit({ signal: 'SIGKILL' });
    cluster.newest(0).becomeReady();
    expect(cluster.slot(0)[0]!.restartsByCause).toEqual({ memory: 1 });
  });

  it('is replaced by one of its own release, not of a newer one', () => {
    const cluster = start(SOFT);
    void cluster.supervisor.reload('test');
    cluster.newest(0).exit(); // the reload is over, and failed
    holds(cluster.serving(1), 300);
    check();
    expect(cluster.forks.at(-1)).toMatchObject({ slot: 1, generation: 0 });
  });

  it('is left alone where nothing at all is known of it', () => {
    const cluster = start(BOTH);
    check();
    expect(cluster.story).toEqual(['worker-ready', 'worker-ready']);
  });

  it('is left alone where it is starting, and on its way out, alone or beside the next', () => {
    const cluster = start(SOFT, 1, 'starting');
    const old = cluster.newest(0);
    holds(old, 300);
    check();
    expect(cluster.forked).toHaveLength(1);
    old.becomeReady();
    old.say({ type: 'leaving' });
    check();
    expect(cluster.picture).toEqual(['0: gen=0 draining', '0: gen=0 starting']);
    cluster.newest(0).becomeReady();
    check();
    expect(cluster.forked).toHaveLength(2);
  });

  it('is left alone as a candidate', () => {
    const cluster = start(SOFT, 1);
    void cluster.supervisor.reload('test');
    holds(cluster.newest(0), 300);
    cluster.newest(0).becomeReady();
    check();
    expect(cluster.events('warning')).toEqual([]);
  });
});

describe('workers that are too large or too old together', () => {
  it('are replaced one slot at a time, and said to be when their turn has come', () => {
    const cluster = start(SOFT, 3);
    for (const worker of cluster.forked) holds(worker, 300);
    check();
    for (const slot of [0, 1, 2]) {
      expect(cluster.workers('starting')).toEqual([cluster.newest(slot)]);
      expect(cluster.events('worker-replacing').at(-1)!.worker.slot).toBe(slot);
      const old = cluster.serving(slot);
      cluster.newest(slot).becomeReady();
      check();
      expect(cluster.workers('starting')).toEqual([]);
      old.exit({ code: 0 });
    }
    check();
    expect(cluster.forked).toHaveLength(6);
    expect(cluster.events('worker-replacing')).toHaveLength(3);
  });
});

describe('a worker above the hard limit', () => {
  it.each(['starting', 'ready', 'draining'] as const)('is killed, also while it is %s', (state) => {
    const cluster = start(BOTH, 1, 'starting');
    const worker = cluster.newest(0);
    if (state !== 'starting') worker.becomeReady();
    if (state === 'draining') worker.say({ type: 'leaving' });
    vi.advanceTimersByTime(100);
    expect(worker.handle.state).toBe(state);
    holds(worker, 400);
    check();
    expect(worker.signals).not.toContain('SIGKILL');
    holds(worker, 401);
    check();
    expect(worker.signals).toEqual(['SIGKILL']);
    worker.exit({ signal: 'SIGKILL' });
    const detail = 'it held 401 MB of memory, above memory.hardLimitBytes (400 MB), and was killed';
    if (state === 'draining') expect(cluster.events('worker-stopped')[0]!.problem).toBe(detail);
    else expect(cluster.events('worker-died')).toMatchObject([{ cause: 'memory', detail }]);
  });

  it('is killed also where it hangs and owes an answer', () => {
    const cluster = start(HARD, 1);
    const worker = cluster.newest(0);
    check();
    expect(worker.sent('ping')).toHaveLength(1);
    worker.say({ type: 'blocked', forMs: 1, requests: [], frames: [] });
    worker.handle.report({ residentMemoryBytes: 500 * MB });
    check();
    expect(worker.signals).toEqual(['SIGKILL']);
  });

  it('is killed also as a candidate', () => {
    const cluster = start({ ...BOTH }, 1);
    void cluster.supervisor.reload('test');
    cluster.newest(0).becomeReady();
    holds(cluster.newest(0), 500);
    check();
    expect(cluster.forked.map(({ signals }) => signals)).toEqual([[], ['SIGKILL']]);
  });

  it.each([
    ['replaced', 'its end is a failure, which has a successor of its own', BOTH],
    ['recycled', 'it is dead already', { ...HARD, ...BUSY }],
  ])('is not %s as well: %s', (_, _reason, options) => {
    const cluster = start(options);
    serves(cluster.newest(0), 5_000);
    holds(cluster.newest(0), 401);
    check();
    expect(cluster.newest(0).signals).toEqual(['SIGKILL']);
    expect(cluster.forked).toHaveLength(2);
  });
});

describe('a worker that has served long enough', () => {
  it('is replaced sooner or later than others, by the jitter', () => {
    const clusters = Array.from(
      { length: 20 },
      () => new FakeCluster(1, { hangTimeoutMs: false, ...BUSY }, 'ready', true),
    );
    const replacedAt = (requests: number) => {
      for (const cluster of clusters) serves(cluster.serving(0), requests);
      check();
      return clusters.filter(({ forked }) => forked.length > 1).length;
    };
    const [early, halfway, late] = [replacedAt(899), replacedAt(1_000), replacedAt(1_101)];
    expect([early, late]).toEqual([0, 20]);
    expect(halfway).toBeGreaterThan(0);
    expect(halfway).toBeLessThan(20);
  });

  it('is no failure, and the next one has its own requests counted, not those of the slot', () => {
    const cluster = start(BUSY, 1);
    serves(cluster.newest(0), 1_000);
    check();
    cluster.succeed(0);
    serves(cluster.newest(0), 10);
    check();
    expect(cluster.forked).toHaveLength(2);
    expect(cluster.slot(0)).toMatchObject([
      { requestsTotal: 1_010, restarts: 0, restartsByCause: {} },
    ]);
  });

  it('is replaced for its memory where that is the matter too', () => {
    const cluster = start({ ...SOFT, ...BUSY }, 1);
    serves(cluster.newest(0), 1_000);
    holds(cluster.newest(0), 300);
    check();
    expect(cluster.events('worker-replacing')).toMatchObject([{ cause: 'memory' }]);
  });
});

describe('a replacement that fails', () => {
  function failed(options = SOFT) {
    const cluster = start(options, 1);
    holds(cluster.newest(0), 300);
    check();
    cluster.newest(0).exit();
    return cluster;
  }

  it('leaves the worker in its place, and is warned of with the next try', () => {
    const cluster = failed();
    expect(cluster.events('warning')).toEqual([
      {
        worker: cluster.serving(0).handle.identity,
        message: 'is not replaced (cause=memory), next try in 15000 ms: exited with code 1',
      },
    ]);
    expect(cluster.slot(0)).toMatchObject([{ state: 'ready', restartsByCause: {} }]);
  });

  it('does not save the worker from the hard limit', () => {
    const cluster = failed(BOTH);
    holds(cluster.serving(0), 500);
    check();
    expect(cluster.serving(0).signals).toEqual(['SIGKILL']);
  });
});

describe('a reading of a worker', () => {
  it.runIf(process.platform === 'linux')(
    'has its memory as the kernel knows it: a hung worker reports nothing',
    () => {
      const { handle } = new FakeWorker({ pid: process.pid });
      handle.report({ ...STATS, residentMemoryBytes: 1 });
      expect(handle.reading().residentBytes).toBeGreaterThan(10 * MB);
    },
  );

  it('has its own report if the kernel knows no such process', () => {
    const { handle } = new FakeWorker({ pid: 2 ** 22 + 1 });
    handle.report(STATS);
    const { residentMemoryBytes: residentBytes, requestsTotal: requests } = STATS;
    expect(handle.reading()).toEqual({ residentBytes, requests });
  });

  it.each([
    [{}, false],
    [SOFT, true],
    [HARD, true],
    [OLD, true],
    [BUSY, true],
  ] as const)('with %j is taken every second: %s', (options, taken) => {
    const cluster = start(options);
    const reading = vi.spyOn(cluster.newest(0).handle, 'reading');
    check();
    expect(reading.mock.calls.length > 0).toBe(taken);
  });
});
