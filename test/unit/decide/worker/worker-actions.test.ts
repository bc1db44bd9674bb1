import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { ClusterOptions } from '../../../../src/contract/options/resolve.js';
import { PING_INTERVAL_MS } from '../../../../src/decide/worker/liveness.js';
import { FakeCluster } from '../../support/fake-cluster.js';
import type { FakeWorker } from '../../support/fake-worker.js';

beforeEach(() => vi.useFakeTimers());

const CLEAN = { code: 0 };
const KILLED = { signal: 'SIGKILL' } as const;
const ERROR = { name: 'TypeError', message: 'x' };

/** A cluster of one, in which nobody is judged by the pings that nobody answers here. */
function start(options: ClusterOptions = {}, state?: 'starting') {
  const cluster = new FakeCluster(1, { hangTimeoutMs: false, ...options }, state);
  return { cluster, worker: cluster.newest(0) };
}

/** Its worker has been asked to leave. */
function leaving(options?: ClusterOptions) {
  const started = start(options);
  started.cluster.supervisor.stop('test');
  return started;
}

/** How a worker left, once it has ended; the exit code of the cluster tells whether it is well. */
async function left({ cluster, worker }: ReturnType<typeof leaving>, exit: object = CLEAN) {
  worker.exit(exit);
  const [stopped, ...more] = cluster.events('worker-stopped');
  expect(more).toEqual([]);
  expect(await cluster.supervisor.ended).toBe(stopped!.problem === null ? 0 : 1);
  return stopped!;
}

it.each(['lameDuckMs', 'drainTimeoutMs', 'killTimeoutMs'])(
  'a worker that is asked to leave is not killed at once where its %s is the longest there is: the sum overflows a timer',
  (key) => {
    const { worker } = leaving({ shutdown: { [key]: 2 ** 31 - 1 } });
    vi.advanceTimersByTime(60_000);
    expect(worker.signals).toEqual([]);
  },
);

describe('the report of a worker that left', () => {
  it('has no problem where it left cleanly, and how long it took', async () => {
    const started = leaving();
    vi.advanceTimersByTime(250);
    expect(await left(started)).toEqual({
      worker: started.worker.handle.identity,
      cause: 'shutdown',
      drainMs: 250,
      destroyedConnections: 0,
      destroyedWebSockets: 0,
      abortedRequests: 0,
      problem: null,
    });
  });

  it('has what the drain had to cut off', async () => {
    const started = leaving();
    const cutOff = { destroyedConnections: 3, destroyedWebSockets: 1, abortedRequests: 2 };
    started.worker.reportDrain(cutOff);
    expect(await left(started)).toMatchObject({ ...cutOff, problem: null });
  });

  it.each<[what: string, act: (worker: FakeWorker) => void, exit: object, problem: unknown]>([
    [
      'which shutdown hook failed',
      (worker) => worker.reportDrain({ hookError: 'Error: pool is closed' }),
      CLEAN,
      'Error: pool is closed',
    ],
    [
      'that it was killed because it did not end in time',
      () => vi.advanceTimersByTime(20_000),
      KILLED,
      'it did not exit in time and was killed',
    ],
    [
      'why the primary killed it on its way out',
      (worker) => worker.tells({ type: 'channel-broken', error: new Error('no JSON') }),
      KILLED,
      'its channel is broken (no JSON) and it was killed',
    ],
    ['how it ended where it died', () => {}, KILLED, expect.stringContaining('SIGKILL')],
  ])('says %s', async (_, act, exit, problem) => {
    const started = leaving();
    act(started.worker);
    expect(await left(started, exit)).toMatchObject({ problem });
  });
});

describe('the report of a worker that failed', () => {
  it('says how it ended, when, and the last thing it said was wrong', () => {
    const { cluster, worker } = start();
    worker.say({ type: 'fatal', error: ERROR, requests: [] });
    vi.advanceTimersByTime(400);
    worker.exit({ code: 1 });
    expect(cluster.events('worker-died')).toEqual([
      {
        worker: worker.handle.identity,
        cause: 'crash',
        detail: 'drained after an uncaught error',
        uptimeMs: 400,
        error: ERROR,
        requests: [],
        blocked: null,
      },
    ]);
  });

  it('has the requests that were in flight when it called process.exit()', () => {
    const { cluster, worker } = start();
    const requests = [{ method: 'GET', path: '/exit', forMs: 3 }];
    worker.say({ type: 'exiting', requests });
    worker.exit({ code: 1 });
    expect(cluster.events('worker-died')).toMatchObject([{ requests }]);
  });

  it('says why the primary killed it first, not that somebody did', () => {
    const { cluster, worker } = start({ memory: { hardLimitBytes: 20_000_000 } });
    worker.tells({ type: 'channel-broken', error: new Error('no JSON') });
    worker.reports({ residentMemoryBytes: 30_000_000 });
    vi.advanceTimersByTime(1_000);
    expect(worker.signals).toEqual(['SIGKILL', 'SIGKILL']);
    worker.exit(KILLED);
    expect(cluster.events('worker-died')).toMatchObject([
      { cause: 'crash', detail: 'its channel is broken (no JSON) and it was killed' },
    ]);
  });

  const REPORT = {
    forMs: 1_500,
    requests: [
      { method: 'GET', path: '/spin', forMs: 1_490 },
      { method: 'POST', path: '/cats', forMs: 20_000 },
    ],
    frames: ['spin (/app/main.js:3:7)'],
  };

  it.each([
    ['while it served', () => {}],
    [
      'while it drained',
      (worker: FakeWorker) => worker.say({ type: 'fatal', error: ERROR, requests: [] }),
    ],
  ])('says what blocked it %s, for as long as it was blocked by the time it ended', (_, before) => {
    const { cluster, worker } = start();
    vi.advanceTimersByTime(5_000);
    before(worker);
    worker.say({ type: 'blocked', ...REPORT });
    vi.advanceTimersByTime(1_500);
    worker.exit(KILLED);
    expect(cluster.events('worker-died')).toMatchObject([
      {
        blocked: {
          forMs: 3_000,
          requests: [
            { method: 'GET', path: '/spin', forMs: 2_990 },
            { method: 'POST', path: '/cats', forMs: 21_500 },
          ],
          frames: REPORT.frames,
        },
      },
    ]);
  });

  it('says what blocked it while it came up, and nothing of a block that was over', () => {
    const { cluster, worker } = start({}, 'starting');
    worker.say({ type: 'blocked', ...REPORT });
    worker.exit();
    vi.advanceTimersByTime(1_000);
    cluster.newest(0).say({ type: 'blocked', ...REPORT });
    cluster.newest(0).say({ type: 'resumed' });
    cluster.newest(0).exit();
    const blocked = cluster.events('worker-died').map((died) => died.blocked);
    expect(blocked).toMatchObject([{ forMs: 1_500 }, null]);
  });
});

it('an error that nobody caught in a worker on its way out is told at once, and once, and is the problem of its end however that looks', async () => {
  const started = leaving();
  const { cluster, worker } = started;
  const error = { name: 'Error', message: 'too late' };
  worker.say({ type: 'fatal', error, requests: [] });
  worker.say({ type: 'fatal', error: ERROR, requests: [] });
  expect(cluster.events('worker-failing')).toEqual([
    { worker: worker.handle.identity, error, requests: [] },
  ]);
  expect(await left(started)).toMatchObject({
    problem: 'uncaught error while draining: Error: too late',
  });
});

it('a process that SIGKILL does not end is abandoned: its slot gets another worker, and one line says so', () => {
  const cluster = new FakeCluster(2);
  const stuck = cluster.current(0);
  for (const worker of cluster.forked) worker.lively = worker !== stuck;
  vi.advanceTimersByTime(cluster.options.hangTimeoutMs + 2 * PING_INTERVAL_MS);
  expect(stuck.signals).toContain('SIGKILL');
  expect(cluster.forked).toHaveLength(2);

  vi.advanceTimersByTime(11_000);

  expect(cluster.forks.slice(2)).toMatchObject([{ slot: 0 }]);
  expect(cluster.events('worker-died')).toMatchObject([{ cause: 'hang' }]);
  expect(cluster.events('warning')).toMatchObject([
    { worker: stuck.handle.identity, message: expect.stringContaining('was abandoned') },
  ]);
  // It ends at last: that is old news.
  stuck.exit({ signal: 'SIGKILL' });
  expect(cluster.events('worker-died')).toHaveLength(1);
  expect(cluster.forked).toHaveLength(3);
});

describe('an error that keeps workers from coming up', () => {
  /** The last slot still starts: until it has, the cluster does not give up. */
  function start(workers = 3) {
    const options = { hangTimeoutMs: false, readyTimeoutMs: 900_000 } as const;
    const cluster = new FakeCluster(workers, options, 'starting');
    /** The newest worker of a slot fails while it starts; what is told of its error. */
    const fail = (slot: number, message: string | null, name = 'Error') => {
      const worker = cluster.newest(slot);
      const error = { name, message: message ?? '', stack: `${name}: ${message}\n at` };
      if (message !== null) worker.say({ type: 'boot-failed', error });
      worker.exit();
      return cluster.events('worker-died').at(-1)!.error;
    };
    return {
      cluster,
      fail,
      /** For each slot, whether its newest worker prints its error. */
      prints: () =>
        Array.from(
          { length: workers },
          (_, slot) => cluster.forks.findLast((fork) => fork.slot === slot)!.printsBootError,
        ),
      /** They all fail, and the next ones start. */
      failAll: (messages: Record<number, string | null>, name?: string) => {
        for (const [slot, message] of Object.entries(messages)) fail(Number(slot), message, name);
        vi.advanceTimersByTime(15_000);
      },
    };
  }

  it('is printed by one of those that start together, and by none after it', () => {
    const { prints, failAll } = start();
    expect(prints()).toEqual([true, false, false]);
    failAll({ 1: 'no database' });
    expect(prints()).toEqual([true, false, false]);
    failAll({ 0: 'no database' });
    expect(prints()).toEqual([false, false, false]);
    failAll({ 0: 'no database', 1: 'no database' });
    expect(prints()).toEqual([false, false, false]);
  });

  it('is reported with its stack once, and in short from then on', () => {
    const { cluster, fail } = start();
    expect(fail(0, 'no database')).toHaveProperty('stack');
    expect(fail(1, 'no database')).toEqual({
      name: 'Error',
      message: 'no database',
      repeated: true,
    });
    vi.advanceTimersByTime(100);
    expect(fail(0, 'no queue')).toHaveProperty('stack');
    expect(cluster.story).not.toContain('failed');
  });

  it('is news again after a hundred others: a slot that never comes up fills no memory', () => {
    const { cluster, fail } = start(2);
    cluster.newest(1).becomeReady();
    for (let n = 0; n <= 100; n += 1) {
      fail(0, `request ${n} failed`);
      vi.advanceTimersByTime(15_000);
    }
    expect(fail(0, 'request 100 failed')).not.toHaveProperty('stack');
    vi.advanceTimersByTime(15_000);
    expect(fail(0, 'request 0 failed')).toHaveProperty('stack');
  });

  it('is printed by the next worker where the one that was to print it ended without a word', () => {
    const { prints, failAll } = start();
    failAll({ 0: null });
    expect(prints()).toEqual([true, false, false]);
  });

  it('is news once a worker has come up, also one that was to leave, and in each reload', () => {
    const { cluster, prints, fail } = start();
    fail(0, 'no database');
    cluster.newest(2).becomeReady();
    vi.advanceTimersByTime(100);
    expect(prints()[0]).toBe(true);
    expect(fail(0, 'no database')).toHaveProperty('stack');

    cluster.newest(1).say({ type: 'leaving' });
    cluster.newest(1).becomeReady();
    vi.advanceTimersByTime(200);
    expect(fail(0, 'no database')).toHaveProperty('stack');

    for (const reason of ['first', 'second']) {
      void cluster.supervisor.reload(reason);
      expect(cluster.forks.at(-1)).toMatchObject({ slot: 0, printsBootError: true });
      expect(fail(0, 'no database')).toHaveProperty('stack');
    }
  });
});
