import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { WorkerMessage } from '../../../src/contract/messages.js';
import { OomWatch } from '../../../src/primary/worker-messages.js';
import { isResponsive } from '../../../src/primary/worker-handle.js';
import { FakeCluster } from '../support/fake-cluster.js';
import { type FakeWorker, STATS } from '../support/fake-worker.js';

beforeEach(() => vi.useFakeTimers());

const start = () => new FakeCluster(2, { hangTimeoutMs: false });
const BLOCK = { forMs: 5_000, requests: [], frames: ['spin (/app/main.js:3:7)'] };
const raw = (worker: FakeWorker, message: unknown) => worker.tells({ type: 'message', message });
const ours = (worker: FakeWorker, about: object) => raw(worker, { ns: 'nestjs-cluster', ...about });

describe('a message of a worker', () => {
  it.each<[WorkerMessage, number]>([
    [{ type: 'warning', message: 'odd' }, 0],
    [{ type: 'resumed' }, 0],
    [{ type: 'blocked', ...BLOCK }, 1_234],
  ])('shows that the event loop runs, except a report of the watchdog: %j', (message, ageMs) => {
    const cluster = start();
    vi.advanceTimersByTime(1_234);
    cluster.newest(0).say(message);
    expect(cluster.slot(0)[0]!.heartbeatAgeMs).toBe(ageMs);
  });

  it.each([null, undefined, 'x', [], { cmd: 'NODE_x' }, { type: 'leaving' }])(
    'is ignored if it is of the app: %j',
    (message) => {
      const cluster = start();
      vi.advanceTimersByTime(1_234);
      raw(cluster.newest(0), message);
      expect(cluster.slot(0)).toMatchObject([{ heartbeatAgeMs: 1_234 }]);
      expect(cluster.events('warning')).toEqual([]);
    },
  );

  it('gets the socket once, however often the worker asks', () => {
    const cluster = start();
    for (let i = 0; i < 2; i += 1) cluster.newest(0).say({ type: 'listen-request' });
    expect(cluster.granted).toEqual([cluster.newest(0).handle]);
  });

  it('gets the snapshot, with the numbers that came with the request', () => {
    const cluster = start();
    const stats = { ...STATS, requestsTotal: 99 };
    cluster.newest(0).say({ type: 'snapshot-request', id: 7, stats });
    expect(cluster.newest(0).sent('answer')).toMatchObject([
      { id: 7, result: { desired: 2, workers: [{ slot: 0, requestsTotal: 99 }, { slot: 1 }] } },
    ]);
  });

  it('gets the metrics of all workers', async () => {
    const cluster = start();
    const [asking, other] = [cluster.newest(0), cluster.newest(1)];
    asking.say({ type: 'collect-request', id: 8, stats: STATS, ageMs: 0, body: 'A' });
    other.say({ type: 'metrics', stats: { ...STATS, requestsTotal: 70 }, ageMs: 5, body: 'B' });
    await vi.advanceTimersByTimeAsync(0);
    expect(asking.sent('answer')).toMatchObject([
      { id: 8, result: { workers: [{ body: 'A' }, { body: 'B', ageMs: 5 }] } },
    ]);
    expect(cluster.slot(1)).toMatchObject([{ requestsTotal: 70 }]);
  });

  it('reports only numbers: the last value of any other figure stays', () => {
    const cluster = start();
    const worker = cluster.newest(0);
    worker.reports(STATS);
    const odd = { requestsTotal: 77, heapUsedBytes: null, residentMemoryBytes: '1', unknown: 1 };
    worker.reports(odd as never);
    expect(worker.handle.stats).toEqual({ ...STATS, requestsTotal: 77 });
  });

  it('reports the load, which the primary evens out', () => {
    const cluster = start();
    const [busy, idle] = [cluster.newest(0), cluster.newest(1)];
    vi.advanceTimersByTime(250);
    expect(busy.sent('report-load')).toHaveLength(1);
    busy.say({ type: 'load', requests: 1_500_000, connections: 10, utilization: 0.3 });
    idle.say({ type: 'load', requests: 500_000, connections: 10, utilization: 0.1 });
    expect(busy.sent('give-away')).toMatchObject([{ ratio: expect.closeTo(1 / 3, 6) }]);
    expect(idle.sent('give-away')).toEqual([]);
  });
});

describe('a connection that a worker sends', () => {
  const connection = () => ({ close: vi.fn() });
  const give = (worker: FakeWorker, handle: object, type = 'connection') =>
    worker.tells({ type: 'message', message: { ns: 'nestjs-cluster', v: 1, type }, handle });
  const gets = (worker: FakeWorker) => worker.sent('connection').length;

  it('goes to the worker that serves the slot, and is closed here', () => {
    const cluster = start();
    const handle = connection();
    give(cluster.newest(1), handle);
    expect([gets(cluster.newest(0)), gets(cluster.newest(1))]).toEqual([0, 1]);
    expect(handle.close).toHaveBeenCalledOnce();
  });

  it('goes to another worker if the slot has none', () => {
    const cluster = start();
    const leaving = cluster.newest(1);
    cluster.scale(1);
    give(leaving, connection());
    expect([gets(cluster.newest(0)), gets(leaving)]).toEqual([1, 0]);
  });

  it('goes to a blocked worker if there is no other, as a new connection would', () => {
    const cluster = start();
    const leaving = cluster.newest(1);
    cluster.scale(1);
    vi.advanceTimersByTime(10_000);
    expect(isResponsive(cluster.newest(0).handle, performance.now())).toBe(false);
    give(leaving, connection());
    expect(gets(cluster.newest(0))).toBe(1);
  });

  it('is closed if no worker is ready, or if the message is another', () => {
    const cluster = start();
    const handles = [connection(), connection()];
    give(cluster.newest(0), handles[0]!, 'resumed');
    cluster.scale(1);
    cluster.newest(0).enter('draining');
    cluster.newest(1).enter('draining');
    give(cluster.newest(0), handles[1]!);
    for (const { close } of handles) expect(close).toHaveBeenCalledOnce();
    expect([gets(cluster.newest(0)), gets(cluster.newest(1))]).toEqual([0, 0]);
  });
});

describe('a message of another version', () => {
  it('is dropped with one warning', () => {
    const cluster = start();
    for (let i = 0; i < 3; i += 1) ours(cluster.newest(0), { v: 1, type: 'blocked', forMs: -1 });
    ours(cluster.newest(1), { v: 2, type: 'leaving' });
    const message = expect.stringMatching(/^dropped a message from another version/) as string;
    const worker = cluster.newest(0).handle.identity;
    expect(cluster.events('warning')).toEqual([{ message, worker }]);
  });

  it.each<[string, readonly WorkerMessage[]]>([
    ['has sent nothing else', []],
    ['has sent only reports of its watchdog', [{ type: 'blocked', ...BLOCK }, { type: 'resumed' }]],
  ])('kills a starting worker that %s, with the reason', (_, before) => {
    const cluster = new FakeCluster(1, {}, 'starting');
    const worker = cluster.newest(0);
    for (const message of before) worker.say(message);
    ours(worker, { v: 2, type: 'listen-request' });
    expect(worker.signals).toEqual(['SIGKILL']);
    worker.exit({ signal: 'SIGKILL' });
    expect(cluster.events('worker-died')).toMatchObject([
      { cause: 'boot', detail: expect.stringContaining('IPC protocol version 2') as string },
    ]);
    expect(cluster.events('warning')).toEqual([]);
  });

  it('kills no worker that has sent a message of this version', () => {
    const cluster = new FakeCluster(1, {}, 'starting');
    const worker = cluster.newest(0);
    worker.say({ type: 'listen-request' });
    ours(worker, { v: 2, type: 'leaving' });
    expect(worker.signals).toEqual([]);
    expect(cluster.events('warning')).toHaveLength(1);
  });
});

describe('a warning of workers', () => {
  it('is logged once, for the first worker that sends it', () => {
    const cluster = start();
    for (const [slot, message] of [
      [1, 'odd'],
      [0, 'odd'],
      [0, 'odder'],
    ] as const) {
      cluster.newest(slot).say({ type: 'warning', message });
    }
    expect(cluster.events('warning')).toEqual([
      { message: 'odd', worker: cluster.newest(1).handle.identity },
      { message: 'odder', worker: cluster.newest(0).handle.identity },
    ]);
  });

  it('does not fill the log if an app varies it', () => {
    const cluster = start();
    for (let i = 0; i < 1_000; i += 1) {
      cluster.newest(0).say({ type: 'warning', message: `odd ${i}` });
    }
    expect(cluster.events('warning').map(({ message }) => message)).toEqual([
      ...Array.from({ length: 100 }, (_, i) => `odd ${i}`),
      'dropped a warning, because only 100 different warnings are logged',
    ]);
  });
});

it('a worker gets the path of the thread of a package, or the reason why there is none', async () => {
  const cluster = start();
  cluster.threadOf.mockResolvedValueOnce('/run/1.sock').mockRejectedValueOnce(new Error('full'));
  for (const id of [3, 4]) {
    cluster.newest(0).say({ type: 'thread-request', id, name: '@nestjs-cluster/shared' });
  }
  await vi.advanceTimersByTimeAsync(0);
  expect(cluster.threadOf).toHaveBeenCalledWith('@nestjs-cluster/shared');
  expect(cluster.newest(0).sent('answer')).toMatchObject([
    { id: 3, result: '/run/1.sock' },
    { id: 4, refusal: { message: 'full' } },
  ]);
});

it('an answer that cannot be sent is a warning, and not the end of the primary', async () => {
  const cluster = start();
  cluster.threadOf.mockResolvedValue('/run/1.sock');
  cluster.newest(0).say({ type: 'thread-request', id: 3, name: '@nestjs-cluster/shared' });
  cluster.newest(0).failsToSend = new RangeError('Invalid string length');
  await vi.advanceTimersByTimeAsync(0);
  expect(cluster.events('warning')).toMatchObject([{ error: { name: 'RangeError' } }]);
});

it.each<[string, (number | undefined)[], boolean[]]>([
  ['is seen once', [0, 1, 1, 2], [true, false, true]],
  ['is seen late if the count could not be read', [3, undefined, 4], [false, true]],
  ['is unknown without a count', [undefined, 5], [false]],
  ['is unknown if another counter is read', [5, 0], [false]],
])('a kill by the out-of-memory killer %s', (_, counts, seen) => {
  const watch = new OomWatch(() => counts.shift());
  expect(seen.map(() => watch.hasKilled())).toEqual(seen);
});
