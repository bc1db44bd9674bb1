import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type BlockReport, seal, type WorkerMessage } from '../../src/ipc/index.js';
import { Heartbeat } from '../../src/primary/heartbeat.js';
import { Balance } from '../../src/primary/balance.js';
import { laterBy } from '../../src/primary/later.js';
import type { BoundSocket } from '../../src/primary/listening/bound-socket.js';
import { SharedListening } from '../../src/primary/listening/shared-listening.js';
import { MetricsRelay } from '../../src/primary/metrics-relay.js';
import { Switchboard } from '../../src/primary/switchboard.js';
import { EXIT, FakeCluster, METER } from './fake-cluster.js';
import { STATS } from './fake-worker.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const TARGET = { kind: 'tcp', port: 3000, host: '127.0.0.1' } as const;
const BLOCK: BlockReport = { forMs: 5_000, requests: [], frames: ['spin (/app/main.js:3:7)'] };
const ERROR = { name: 'Error', message: 'x' };

function start() {
  const cluster = new FakeCluster(2);
  const heartbeat = new Heartbeat(cluster.options.heartbeat, cluster.emit, METER);
  const relay = new MetricsRelay(
    cluster.table,
    cluster.emit,
    laterBy((action) => action()),
  );
  const socket = { target: TARGET, handle: undefined } as unknown as BoundSocket;
  const balance = new Balance(cluster.table);
  const switchboard = new Switchboard(
    new SharedListening('shared', socket),
    cluster.table,
    heartbeat,
    relay,
    balance,
    cluster.emit,
  );
  const worker = cluster.current(0);
  return {
    cluster,
    balance,
    heartbeat,
    worker,
    receive: (message: WorkerMessage, from = worker) =>
      switchboard.receive(from.handle, seal(message)),
    receiveRaw: (raw: unknown, from = worker) => switchboard.receive(from.handle, raw),
  };
}

const LIFECYCLE: readonly WorkerMessage[] = [
  { type: 'ready', url: 'http://127.0.0.1:3000', endpoints: [], minReady: 1 },
  { type: 'boot-failed', phase: 'init', error: ERROR },
  { type: 'fatal', error: ERROR, abort: false },
  { type: 'leaving' },
  { type: 'checked', id: 1, healthy: true, detail: null },
  { type: 'blocked', ...BLOCK },
  { type: 'reload-request', id: 2 },
  { type: 'scale-request', id: 3, workers: 4 },
];

const HANDLED: readonly WorkerMessage[] = [
  { type: 'listen-request' },
  { type: 'pong', seq: 1, stats: STATS, debugged: false },
  { type: 'snapshot-request', id: 1, stats: STATS },
  { type: 'collect-request', id: 1, stats: STATS, ageMs: 0, body: '[]' },
  { type: 'metrics', asked: false, stats: STATS, ageMs: 0, body: '[]' },
  { type: 'load', requests: 10, connections: 2, utilization: 0.5 },
  { type: 'folded', epoch: 0, count: 0, body: '[]' },
  {
    type: 'drained',
    report: {
      durationMs: 1,
      unacceptedConnections: 0,
      destroyedConnections: 0,
      destroyedWebSockets: 0,
      abortedRequests: 0,
      hookError: null,
    },
  },
  { type: 'warning', message: 'odd' },
  { type: 'resumed' },
];

describe('the switchboard', () => {
  it.each(LIFECYCLE)('passes on what changes a life: $type', (message) => {
    expect(start().receive(message)).toEqual(message);
  });

  it.each(HANDLED)('deals with the rest itself: $type', (message) => {
    expect(start().receive(message)).toBeUndefined();
  });

  it('says where to listen', () => {
    const { worker, receive } = start();
    receive({ type: 'listen-request' });
    expect(worker.sent('listen')).toMatchObject([{ target: TARGET }]);
  });

  it('answers with the snapshot, in which the figures of the asker are new', () => {
    const { worker, receive } = start();
    receive({ type: 'snapshot-request', id: 7, stats: { ...STATS, requestsTotal: 99 } });
    expect(worker.sent('snapshot')).toMatchObject([
      { id: 7, snapshot: { desired: 2, workers: [{ slot: 0, requestsTotal: 99 }, { slot: 1 }] } },
    ]);
  });

  it('files the figures that come with metrics: they are the last of a worker that leaves', () => {
    const { cluster, worker, receive } = start();
    const stats = { ...STATS, requestsTotal: 70, rebalancedConnectionsTotal: 5 };
    receive({ type: 'metrics', asked: false, stats, ageMs: 0, body: '[1]' });
    expect(worker.handle).toMatchObject({ stats });
    expect(cluster.table.snapshot().workers[0]).toMatchObject({
      requestsTotal: 70,
      rebalancedConnectionsTotal: 5,
    });
  });

  it('hands metrics to a worker that wants those of all', () => {
    const { cluster, worker, receive } = start();
    const other = cluster.current(1);
    receive({ type: 'metrics', asked: false, stats: STATS, ageMs: 0, body: '[1]' });
    worker.connected = false; // what it sent of its own accord stands for it
    receive({ type: 'collect-request', id: 4, stats: STATS, ageMs: 0, body: '[2]' }, other);
    expect(other.sent('collected')).toMatchObject([
      { id: 4, workers: [{ body: '[1]' }, { body: '[2]' }] },
    ]);
  });

  it('passes what a worker carries to the balance', () => {
    const { balance, worker, cluster, receive } = start();
    balance.tick();
    receive({ type: 'load', requests: 1_500_000, connections: 10, utilization: 0.3 });
    receive(
      { type: 'load', requests: 500_000, connections: 10, utilization: 0.1 },
      cluster.current(1),
    );
    expect(worker.sent('give-away')).toMatchObject([{ ratio: expect.closeTo(1 / 3, 6) }]);
    expect(cluster.current(1).sent('give-away')).toEqual([]);
  });

  it('grants a worker its socket once, however often it asks', () => {
    const { worker, receive } = start();
    receive({ type: 'listen-request' });
    receive({ type: 'listen-request' });
    expect(worker.sent('listen')).toHaveLength(1);
  });

  it('keeps what a worker says of its drain', () => {
    const { worker, receive } = start();
    const report = {
      durationMs: 9,
      unacceptedConnections: 0,
      destroyedConnections: 3,
      destroyedWebSockets: 1,
      abortedRequests: 2,
      hookError: null,
    };
    receive({ type: 'drained', report });
    expect(worker.handle.drain).toEqual(report);
  });
});

describe('a sign of life', () => {
  const SIGNS = [...LIFECYCLE, ...HANDLED].filter(({ type }) => type !== 'blocked');

  it.each(SIGNS)('is every message of a worker: $type', (message) => {
    const { worker, receive } = start();
    vi.advanceTimersByTime(1_234);
    receive(message);
    expect(worker.handle.seenAt).toBe(1_234);
  });

  it('is not what its watchdog says of a block: that lives on while the worker hangs', () => {
    const { worker, receive } = start();
    worker.handle.seenAt = 5;
    vi.advanceTimersByTime(1_234);
    expect(receive({ type: 'blocked', ...BLOCK })).toMatchObject(BLOCK);
    expect(worker.handle.seenAt).toBe(5);
  });

  it.each([{ type: 'ping', seq: 1 }, { cmd: 'NODE_x' }, null, 'pong'])(
    'is not what matches no message: %j',
    (raw) => {
      const { worker, receiveRaw } = start();
      expect(receiveRaw(raw)).toBeUndefined();
      expect(worker.handle.seenAt).toBeUndefined();
    },
  );
});

describe('a block that is over', () => {
  it('is forgotten: a later end of the worker is not put down to it', () => {
    const { heartbeat, worker, receive } = start();
    heartbeat.blocked(worker.handle, BLOCK, performance.now());
    receive({ type: 'resumed' });
    expect(worker.handle.block).toBeUndefined();
  });
});

describe('a message that is wrong', () => {
  it('is dropped with one warning where it claims to be ours', () => {
    const { cluster, worker, receiveRaw } = start();
    receiveRaw({ ns: 'nestjs-cluster', v: 1, type: 'blocked', forMs: -1 });
    receiveRaw({ ns: 'nestjs-cluster', v: 99, type: 'leaving' }, cluster.current(1));
    expect(cluster.events('warning')).toEqual([
      {
        message:
          'dropped a message that is not of this version of nestjs-cluster; restart the cluster after an update of it',
        worker: worker.handle.identity,
      },
    ]);
  });

  it('in another version of the protocol ends a worker that has said nothing else, and tells why', () => {
    const { cluster, receiveRaw } = start();
    const slot = cluster.slot(0);
    const worker = cluster.fork(slot, slot.release);
    receiveRaw({ ns: 'nestjs-cluster', v: 2, type: 'listen-request' }, worker);
    expect(worker.signals).toEqual(['SIGKILL']);
    expect(worker.handle.condemned).toMatchObject({
      cause: 'boot',
      detail: expect.stringContaining('version 2 of the protocol') as string,
    });
    expect(cluster.events('warning')).toEqual([]);
  });

  it('in another version of the protocol ends nobody who is known to speak this one', () => {
    const { cluster, receive, receiveRaw } = start();
    const slot = cluster.slot(0);
    const worker = cluster.fork(slot, slot.release);
    receive({ type: 'listen-request' }, worker);
    receiveRaw({ ns: 'nestjs-cluster', v: 2, type: 'leaving' }, worker);
    expect(worker.signals).toEqual([]);
    expect(cluster.events('warning')).toHaveLength(1);
  });

  it('is counted for the slot of its worker, each time', () => {
    const { cluster, receiveRaw } = start();
    const dropped = () => cluster.table.snapshot().workers.map((each) => each.droppedMessagesTotal);
    for (let i = 0; i < 3; i += 1) receiveRaw({ ns: 'nestjs-cluster', v: 1, type: 'unknown' });
    receiveRaw({ ns: 'nestjs-cluster', v: 2, type: 'leaving' }, cluster.current(1));
    receiveRaw({ type: 'not ours' });
    expect(dropped()).toEqual([3, 1]);
    const [first] = cluster.table.slots;
    first!.remove(cluster.current(0).handle, EXIT);
    expect(dropped()).toEqual([3, 1]);
  });

  it.each([null, undefined, 'x', 5, [], {}, { cmd: 'NODE_x' }, { type: 'leaving' }])(
    "passes by where it is the app's own: %j (I8)",
    (raw) => {
      const { cluster, receiveRaw } = start();
      expect(receiveRaw(raw)).toBeUndefined();
      expect(cluster.events('warning')).toEqual([]);
    },
  );
});

describe('a warning of workers', () => {
  it('is told once, by the first that says it', () => {
    const { cluster, receive } = start();
    receive({ type: 'warning', message: 'odd' }, cluster.current(1));
    receive({ type: 'warning', message: 'odd' });
    receive({ type: 'warning', message: 'odder' });
    expect(cluster.events('warning').map(({ message, worker }) => [message, worker?.slot])).toEqual(
      [
        ['odd', 1],
        ['odder', 0],
      ],
    );
  });

  it('does not fill the log where an app varies it', () => {
    const { cluster, receive } = start();
    for (let i = 0; i < 1_000; i += 1) receive({ type: 'warning', message: `odd ${i}` });
    expect(cluster.events('warning')).toHaveLength(100);
  });
});
