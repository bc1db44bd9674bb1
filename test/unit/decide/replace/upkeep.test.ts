import { beforeEach, expect, it, vi } from 'vitest';
import type { ClusterOptions } from '../../../../src/contract/options/resolve.js';
import { isRecyclingDue } from '../../../../src/decide/replace/upkeep.js';
import { FakeCluster } from '../../support/fake-cluster.js';
import type { FakeWorker } from '../../support/fake-worker.js';

beforeEach(() => vi.useFakeTimers());

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

it('a worker that is above the soft limit from the start is replaced once in a while, not over and over, and that is said once', () => {
  const cluster = start(SOFT, 1, 'starting');
  holds(cluster.newest(0), 250);
  cluster.newest(0).becomeReady();
  vi.advanceTimersByTime(14_999);
  expect(cluster.forked).toHaveLength(1);
  vi.advanceTimersByTime(1);
  expect(cluster.forked).toHaveLength(2);
  expect(cluster.events('warning')).toMatchObject([
    { message: expect.stringContaining('the limit is too low for this app') as string },
  ]);
});

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
])(
  'a worker is replaced, and serves until the new one is ready: by %s: %s',
  (cause, detail, options, notEnough, enough) => {
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
  },
);

it.each(['starting', 'ready', 'draining'] as const)(
  'a worker above the hard limit is killed, also while it is %s',
  (state) => {
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
    const detail = 'it used 401 MB of memory, above memory.hardLimitBytes (400 MB), and was killed';
    if (state === 'draining') expect(cluster.events('worker-stopped')[0]!.problem).toBe(detail);
    else expect(cluster.events('worker-died')).toMatchObject([{ cause: 'memory', detail }]);
  },
);

it('a replacement that fails leaves the worker in its place, and is warned of with the next try', () => {
  const cluster = start(SOFT, 1);
  holds(cluster.newest(0), 300);
  check();
  cluster.newest(0).exit();
  expect(cluster.events('warning')).toEqual([
    {
      worker: cluster.serving(0).handle.identity,
      message: 'was not replaced (cause=memory), next attempt in 15000 ms: exited with code 1',
    },
  ]);
  expect(cluster.slot(0)).toMatchObject([{ state: 'ready', restartsByCause: {} }]);
});

it.each([
  [{}, false],
  [SOFT, true],
  [HARD, true],
  [OLD, true],
  [BUSY, true],
] as const)('a reading of a worker with %j is taken every second: %s', (options, taken) => {
  const cluster = start(options);
  const reading = vi.spyOn(cluster.newest(0).handle, 'reading');
  check();
  expect(reading.mock.calls.length > 0).toBe(taken);
});

it.each([
  [0, 900],
  [0.25, 950],
  [0.5, 1_000],
  [1, 1_100],
])(
  'a worker with the jitter %d and a limit of 1000 has served long enough at %d',
  (jitter, limit) => {
    const never = { maxRequests: Infinity, maxAgeMs: Infinity };
    const due = (requests: number, ageMs: number, limits: object) =>
      isRecyclingDue({ requests, ageMs }, { ...never, ...limits }, jitter);
    for (const [amount, expected] of [
      [limit - 1, false],
      [limit, true],
    ] as const) {
      expect(due(amount, 0, { maxRequests: 1_000 })).toBe(expected);
      expect(due(0, amount, { maxAgeMs: 1_000 })).toBe(expected);
    }
  },
);
