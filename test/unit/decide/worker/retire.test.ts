import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ClusterOptions } from '../../../../src/contract/options/resolve.js';
import { FakeCluster } from '../../support/fake-cluster.js';
import type { FakeWorker } from '../../support/fake-worker.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const SHUTDOWN = { lameDuckMs: 1_000, drainTimeoutMs: 10_000, killTimeoutMs: 2_000 };
const CLEAN = { code: 0 };
const KILLED = { signal: 'SIGKILL' } as const;
const ERROR = { name: 'TypeError', message: 'x' };

/** A cluster of one, in which nobody is judged by the pings that nobody answers here. */
function start(options: ClusterOptions = {}, state?: 'starting') {
  const all = { hangTimeoutMs: false, shutdown: SHUTDOWN, ...options } as const;
  const cluster = new FakeCluster(1, all, state);
  return { cluster, worker: cluster.newest(0) };
}

/** Its worker has been asked to leave. */
function leaving(options?: ClusterOptions, state?: 'starting') {
  const started = start(options, state);
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

describe('a worker that is asked to leave while it comes up', () => {
  it('is ended at once, and killed after a second where it does not become ready', () => {
    const { worker } = leaving({}, 'starting');
    vi.advanceTimersByTime(999);
    expect(worker.signals).toEqual(['SIGTERM']);
    vi.advanceTimersByTime(1);
    expect(worker.signals).toEqual(['SIGTERM', 'SIGKILL']);
  });

  it('drains like any other where it has become ready meanwhile, and once: it serves', () => {
    const { worker } = leaving({}, 'starting');
    for (let times = 0; times < 3; times += 1) worker.becomeReady();
    expect(worker.sent('drain')).toMatchObject([{ cause: 'shutdown' }]);
    vi.advanceTimersByTime(13_499);
    expect(worker.signals).toEqual(['SIGTERM']);
    vi.advanceTimersByTime(1);
    expect(worker.signals).toEqual(['SIGTERM', 'SIGKILL']);
  });
});

describe('a worker that is asked to leave', () => {
  it('has all the time it was promised before it is killed', () => {
    const { worker } = leaving();
    vi.advanceTimersByTime(13_499);
    expect(worker.signals).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(worker.signals).toEqual(['SIGKILL']);
  });

  it.each(['lameDuckMs', 'drainTimeoutMs', 'killTimeoutMs'])(
    'is not killed at once where its %s is the longest there is: the sum overflows a timer',
    (key) => {
      const { worker } = leaving({ shutdown: { ...SHUTDOWN, [key]: 2 ** 31 - 1 } });
      vi.advanceTimersByTime(60_000);
      expect(worker.signals).toEqual([]);
    },
  );
});

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

describe('an error that nobody caught in a worker on its way out', () => {
  it('is told at once, and once, and is the problem of its end however that looks', async () => {
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
});

describe('what the hooks of an app are told', () => {
  it('is the signal of the cluster, and SIGTERM where there was none', () => {
    const asked = start();
    asked.cluster.supervisor.stop('SIGINT', 'SIGINT');
    const late = start({}, 'starting');
    late.cluster.supervisor.stop('SIGHUP', 'SIGHUP');
    late.worker.becomeReady();
    const recycled = start({ memory: { softLimitBytes: 1e9 } });
    recycled.cluster.outgrow(0);
    recycled.cluster.newest(0).becomeReady();
    const told = [asked, leaving(), late, recycled].map(({ worker }) => worker.sent('drain'));
    expect(told.map(([drain]) => drain!.signal)).toEqual([
      'SIGINT',
      'SIGTERM',
      'SIGHUP',
      'SIGTERM',
    ]);
  });
});
