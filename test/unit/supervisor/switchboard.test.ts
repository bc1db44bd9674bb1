import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { seal, type WorkerMessage } from '../../../src/contract/messages.js';
import { resolveOptions } from '../../../src/contract/options/index.js';
import { Balance } from '../../../src/supervisor/serve/balance.js';
import { WorkerMap } from '../../../src/supervisor/decide/worker/worker-map.js';
import { newCluster } from '../../../src/supervisor/decide/transition.js';
import type { Inspections } from '../../../src/supervisor/serve/inspections.js';
import type { BoundSocket } from '../../../src/supervisor/listening/bound-socket.js';
import { SharedListening } from '../../../src/supervisor/listening/shared-listening.js';
import { MetricsRelay } from '../../../src/supervisor/serve/metrics-relay.js';
import { Switchboard } from '../../../src/supervisor/switchboard.js';
import { WorkerReadings } from '../../../src/supervisor/serve/worker-readings.js';
import { WorkerTable } from '../../../src/supervisor/processes/worker-table.js';
import { FakeCluster, METER } from '../support/fake-cluster.js';
import { later } from '../support/fake-relay.js';
import { FakeWorker, knownWorker, STATS } from '../support/fake-worker.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const TARGET = { kind: 'tcp', port: 3000, host: '127.0.0.1' } as const;
const BLOCK = { forMs: 5_000, requests: [], frames: ['spin (/app/main.js:3:7)'] };
const ERROR = { name: 'Error', message: 'x' };
const RELEASE = { generation: 0, script: '/app/main.js', cwd: '/app' };

/** Two workers that are ready: the core knows them as 1 and 2. */
function start() {
  const [worker, other] = [new FakeWorker({ slot: 0 }), new FakeWorker({ slot: 1 })];
  const emit = vi.fn();
  const threadOf = vi.fn<(name: string) => Promise<string>>();
  const socket = { target: TARGET, handle: undefined } as unknown as BoundSocket;
  const listening = new SharedListening('shared', socket);
  const workers = new WorkerMap(
    [1, 2].map((id) => knownWorker({ id, slot: id - 1, state: 'ready' })),
  );
  const table = new WorkerTable({ ...newCluster(2, RELEASE, 0, 0), workers }, listening, METER);
  table.add(1, worker.handle);
  table.add(2, other.handle);
  const balance = new Balance(table);
  const relay = new MetricsRelay(table, later);
  const readings = new WorkerReadings(resolveOptions({}, {}));
  const inspections = { answered: vi.fn() } as unknown as Inspections;
  const switchboard = new Switchboard({
    listening,
    table,
    relay,
    balance,
    readings,
    inspections,
    emit,
    threads: { path: threadOf },
  });
  const receiveRaw = (message: unknown, from = worker, handle?: unknown) =>
    switchboard.receive(from === worker ? 1 : 2, { type: 'message', message, handle });
  return {
    worker,
    other,
    table,
    balance,
    switchboard,
    receive: (message: WorkerMessage, from = worker, handle?: unknown) =>
      receiveRaw(seal(message), from, handle),
    receiveRaw,
    threadOf,
    warnings: () => emit.mock.calls.map(([, event]: unknown[]) => event as object),
  };
}

const REPORT = {
  destroyedConnections: 0,
  destroyedWebSockets: 0,
  abortedRequests: 0,
  hookError: null,
};

const DECIDED: readonly WorkerMessage[] = [
  { type: 'ready', url: 'http://127.0.0.1:3000', endpoints: [], minReady: 1 },
  { type: 'boot-failed', error: ERROR },
  { type: 'fatal', error: ERROR, abort: false, requests: [] },
  { type: 'leaving' },
  { type: 'checked', healthy: true, detail: null },
  { type: 'verified', error: null },
  { type: 'pong', seq: 1, stats: STATS, debugged: false },
  { type: 'blocked', ...BLOCK },
  { type: 'resumed' },
  { type: 'drained', report: REPORT },
];

const ASKED: readonly WorkerMessage[] = [
  { type: 'reload-request', id: 2 },
  { type: 'scale-request', id: 3, workers: 4 },
];

const HANDLED: readonly WorkerMessage[] = [
  { type: 'listen-request' },
  { type: 'snapshot-request', id: 1, stats: STATS },
  { type: 'collect-request', id: 1, stats: STATS, ageMs: 0, body: '[]' },
  { type: 'metrics', stats: STATS, ageMs: 0, body: '[]' },
  { type: 'load', requests: 10, connections: 2, utilization: 0.5 },
  { type: 'warning', message: 'odd' },
];

describe('every message of a worker', () => {
  it.each([...DECIDED, ...ASKED, ...HANDLED])(
    'is a sign of life, and brings no handle: $type',
    (message) => {
      const { receive, worker } = start();
      const handle = { close: vi.fn() };
      worker.handle.seenAt = 5;
      vi.advanceTimersByTime(1_234);
      receive(message, worker, handle);
      expect(handle.close).toHaveBeenCalledOnce();
      // The watchdog, which says of a block, lives on while the worker hangs.
      expect(worker.handle.seenAt).toBe(message.type === 'blocked' ? 5 : 1_234);
    },
  );
});

describe('a handle beside a message', () => {
  it('is closed where the message is broken, or its worker is gone', () => {
    const { receiveRaw, switchboard, worker } = start();
    const [first, second] = [{ close: vi.fn() }, { destroy: vi.fn(), close: vi.fn() }];
    const broken = { ...seal({ type: 'leaving' }), type: 'odd' };
    receiveRaw(broken, worker, first);
    switchboard.receive(9, { type: 'message', message: broken, handle: second });
    expect(first.close).toHaveBeenCalledOnce();
    expect(second.destroy).toHaveBeenCalledOnce();
  });

  it('is left to the app beside a message of its own', () => {
    const { receiveRaw, worker } = start();
    const handle = { close: vi.fn() };
    receiveRaw({ question: 1 }, worker, handle);
    expect(handle.close).not.toHaveBeenCalled();
  });
});

describe('the switchboard', () => {
  it.each(DECIDED)('passes on what changes a life: $type', (message) => {
    expect(start().receive(message)).toMatchObject({ type: 'worker', worker: 1, event: message });
  });

  it('passes on what is asked for, with who asked', () => {
    const requester = { by: 'worker', worker: 2, slot: 1 };
    const { receive, other } = start();
    expect(ASKED.map((message) => receive(message, other))).toEqual([
      { type: 'reload', reason: 'reload() in worker=1', requester: { ...requester, id: 2 } },
      {
        type: 'scale',
        reason: 'scale() in worker=1',
        workers: 4,
        requester: { ...requester, id: 3 },
      },
    ]);
  });

  it('passes on how a process ended, and what its channel has', () => {
    vi.setSystemTime('2026-01-01T00:00:00Z');
    const { switchboard } = start();
    const exit = { code: 1, signal: null };
    const at = '2026-01-01T00:00:00.000Z';
    expect(switchboard.receive(2, { type: 'exit', exit })).toEqual({
      type: 'worker',
      worker: 2,
      event: { type: 'exited', exit, oomKill: false, at },
    });
    for (const type of ['channel-error', 'channel-broken'] as const) {
      expect(switchboard.receive(2, { type, error: new Error('x') })).toMatchObject({
        type: 'worker',
        worker: 2,
        event: { type, error: ERROR },
      });
    }
  });

  it.each(HANDLED)('deals with the rest itself: $type', (message) => {
    expect(start().receive(message)).toBeUndefined();
  });

  it('answers with the snapshot, in which the figures of the requester are new', () => {
    const { worker, receive } = start();
    receive({ type: 'snapshot-request', id: 7, stats: { ...STATS, requestsTotal: 99 } });
    expect(worker.sent('answer')).toMatchObject([
      { id: 7, result: { desired: 2, workers: [{ slot: 0, requestsTotal: 99 }, { slot: 1 }] } },
    ]);
  });

  it('files the figures that come with metrics: they are the last of a worker that leaves', () => {
    const { table, worker, receive } = start();
    const stats = { ...STATS, requestsTotal: 70, rebalancedConnectionsTotal: 5 };
    receive({ type: 'metrics', stats, ageMs: 0, body: '[1]' });
    expect(worker.handle).toMatchObject({ stats });
    expect(table.snapshot().workers[0]).toMatchObject({
      requestsTotal: 70,
      rebalancedConnectionsTotal: 5,
    });
  });

  it('takes only numbers as figures: the last ones of the others stay', () => {
    const { worker, receive } = start();
    receive({ type: 'pong', seq: 1, stats: STATS });
    const odd = { requestsTotal: 77, heapUsedBytes: null, residentMemoryBytes: '1', unknown: 1 };
    receive({ type: 'pong', seq: 2, stats: odd as never });
    expect(worker.handle.stats).toEqual({ ...STATS, requestsTotal: 77 });
  });

  it('passes what a worker carries to the balance', () => {
    const { balance, worker, other, receive } = start();
    balance.tick();
    receive({ type: 'load', requests: 1_500_000, connections: 10, utilization: 0.3 });
    receive({ type: 'load', requests: 500_000, connections: 10, utilization: 0.1 }, other);
    expect(worker.sent('give-away')).toMatchObject([{ ratio: expect.closeTo(1 / 3, 6) }]);
    expect(other.sent('give-away')).toEqual([]);
  });

  it('grants a worker its socket once, however often it asks', () => {
    const { worker, receive } = start();
    for (let i = 0; i < 2; i += 1) receive({ type: 'listen-request' });
    expect(worker.sent('listen')).toMatchObject([{ target: TARGET }]);
  });
});

it.each([{ type: 'ping', seq: 1 }, { cmd: 'NODE_x' }, null, 'pong'])(
  'what matches no message is no sign of life: %j',
  (raw) => {
    const { worker, receiveRaw } = start();
    expect(receiveRaw(raw)).toBeUndefined();
    expect(worker.handle.seenAt).toBeUndefined();
  },
);

describe('a message that is wrong', () => {
  const raw = (worker: FakeWorker, about: object) =>
    worker.tells({ type: 'message', message: { ns: 'nestjs-cluster', ...about } });

  it('is dropped with one warning where it claims to be ours', () => {
    const { worker, other, receiveRaw, warnings } = start();
    receiveRaw({ ns: 'nestjs-cluster', v: 1, type: 'blocked', forMs: -1 });
    receiveRaw({ ns: 'nestjs-cluster', v: 99, type: 'leaving' }, other);
    expect(warnings()).toEqual([
      {
        message:
          'dropped a message that is not of this version of nestjs-cluster; restart the cluster after an update of it',
        worker: worker.handle.identity,
      },
    ]);
  });

  it('in another version of the protocol ends a worker that has said nothing else, and tells why', () => {
    const cluster = new FakeCluster(1, {}, 'starting');
    const worker = cluster.newest(0);
    raw(worker, { v: 2, type: 'listen-request' });
    expect(worker.signals).toEqual(['SIGKILL']);
    worker.exit({ signal: 'SIGKILL' });
    expect(cluster.events('worker-died')).toMatchObject([
      { cause: 'boot', detail: expect.stringContaining('version 2 of the protocol') as string },
    ]);
    expect(cluster.events('warning')).toEqual([]);
  });

  it('in another version of the protocol ends it too where its watchdog has spoken: that has a pipe of its own', () => {
    const cluster = new FakeCluster(1, {}, 'starting');
    const worker = cluster.newest(0);
    worker.say({ type: 'blocked', ...BLOCK });
    worker.say({ type: 'resumed' });
    raw(worker, { v: 2, type: 'listen-request' });
    expect(worker.signals).toEqual(['SIGKILL']);
  });

  it('in another version of the protocol ends nobody who is known to speak this one', () => {
    const cluster = new FakeCluster(1, {}, 'starting');
    const worker = cluster.newest(0);
    worker.say({ type: 'listen-request' });
    raw(worker, { v: 2, type: 'leaving' });
    expect(worker.signals).toEqual([]);
    expect(cluster.events('warning')).toHaveLength(1);
  });

  it('is counted for the slot of its worker, each time', () => {
    const cluster = new FakeCluster(2);
    const dropped = () =>
      cluster.supervisor.snapshot().workers.map((each) => each.droppedMessagesTotal);
    for (let i = 0; i < 3; i += 1) raw(cluster.newest(0), { v: 1, type: 'unknown' });
    raw(cluster.newest(1), { v: 2, type: 'leaving' });
    cluster.newest(0).tells({ type: 'message', message: { type: 'not ours' } });
    expect(dropped()).toEqual([3, 1]);
    cluster.newest(0).exit();
    expect(dropped()).toEqual([3, 1]);
  });

  it.each([null, undefined, 'x', 5, [], {}, { cmd: 'NODE_x' }, { type: 'leaving' }])(
    "passes by where it is the app's own: %j",
    (message) => {
      const { receiveRaw, warnings } = start();
      expect(receiveRaw(message)).toBeUndefined();
      expect(warnings()).toEqual([]);
    },
  );
});

describe('a warning of workers', () => {
  it('is told once, by the first that says it', () => {
    const { worker, other, receive, warnings } = start();
    receive({ type: 'warning', message: 'odd' }, other);
    receive({ type: 'warning', message: 'odd' });
    receive({ type: 'warning', message: 'odder' });
    expect(warnings()).toEqual([
      { message: 'odd', worker: other.handle.identity },
      { message: 'odder', worker: worker.handle.identity },
    ]);
  });

  it('does not fill the log where an app varies it', () => {
    const { receive, warnings } = start();
    const vary = (): void => {
      for (let i = 0; i < 1_000; i += 1) receive({ type: 'warning', message: `odd ${i}` });
    };
    const dropped = 'dropped a warning, because 100 different ones are the most that are logged';
    vary();
    expect(warnings().slice(100)).toEqual([{ message: dropped }]);
    vi.advanceTimersByTime(60_000);
    vary();
    expect(warnings().slice(101)).toEqual([
      { message: `${dropped} (and 899 times before, since it was last said)` },
    ]);
    receive({ type: 'warning', message: 'odd 7' });
    expect(warnings()).toHaveLength(102);
  });
});

describe('a worker that asks for the thread of a package', () => {
  const ask = { type: 'thread-request', id: 3, name: '@nestjs-cluster/shared' } as const;

  it('gets the path of its socket, and the first request starts it', async () => {
    const { worker, receive, threadOf } = start();
    threadOf.mockResolvedValue('/run/1.sock');
    expect(threadOf).not.toHaveBeenCalled();
    receive(ask);
    await vi.advanceTimersByTimeAsync(0);
    expect(threadOf).toHaveBeenCalledWith('@nestjs-cluster/shared');
    expect(worker.sent('answer')).toMatchObject([{ id: 3, result: '/run/1.sock' }]);
  });

  it('gets the reason why there is none', async () => {
    const { worker, receive, threadOf } = start();
    threadOf.mockRejectedValue(new Error('no directory'));
    receive(ask);
    await vi.advanceTimersByTimeAsync(0);
    expect(worker.sent('answer')).toMatchObject([{ id: 3, refusal: { message: 'no directory' } }]);
  });
});
