import { describe, expect, it, vi } from 'vitest';
import type { ClusterEventMap } from '../../../src/contract/log/events.js';
import type { PrimaryMessage } from '../../../src/contract/messages.js';
import { FakeWorker } from '../support/fake-worker.js';

const READY = { worker: { slot: 0, pid: 1, generation: 0 } } as ClusterEventMap['worker-ready'];

/** A worker that reads nothing, and so many messages that wait for it. */
function clogged(waiting: number) {
  const worker = new FakeWorker();
  worker.handle.wants = new Set(['worker-ready']);
  worker.clogged = true;
  for (let seq = 1; seq <= waiting; seq += 1) worker.handle.send({ type: 'ping', seq });
  return worker;
}

describe('a worker that does not read its messages', () => {
  it('gets no more than 64, and further ones once it has read them', () => {
    const worker = clogged(63);
    expect(worker.handle.congested).toBe(false);
    for (const seq of [64, 65]) worker.handle.send({ type: 'ping', seq });
    expect(worker.messages).toHaveLength(64);
    expect([worker.handle.congested, worker.handle.reachable]).toEqual([true, false]);

    worker.unclog();
    worker.handle.send({ type: 'ping', seq: 66 });
    expect(worker.sent('ping').at(-1)).toMatchObject({ seq: 66 });
    expect([worker.handle.congested, worker.handle.reachable]).toEqual([false, true]);
  });

  it.each<PrimaryMessage>([
    { type: 'adopt', slot: 1 },
    { type: 'release', slot: 1 },
    { type: 'drain', cause: 'reload', signal: 'SIGTERM' },
    { type: 'released' },
    { type: 'force' },
  ])('gets what decides its life all the same: $type', (message) => {
    const worker = clogged(70);
    worker.handle.send(message);
    expect(worker.messages).toHaveLength(65);
    expect(worker.messages.at(-1)).toMatchObject(message);
  });

  it('gets no event beside 32 messages, and the next event says how many it has missed', () => {
    const worker = clogged(31);
    worker.handle.tell('stopped', { exitCode: 0, uptimeMs: 1 }); // it has no listener
    for (let i = 0; i < 4; i += 1) worker.handle.tell('worker-ready', READY);
    expect(worker.sent('event')).toMatchObject([{ name: 'worker-ready', event: READY, missed: 0 }]);
    worker.unclog();
    for (let i = 0; i < 2; i += 1) worker.handle.tell('worker-ready', READY);
    expect(worker.sent('event').map(({ missed }) => missed)).toEqual([0, 3, 0]);
  });

  it('is not charged for messages that Node could not queue', () => {
    const worker = new FakeWorker();
    worker.failsToSend = new Error('EAGAIN');
    for (let seq = 1; seq <= 64; seq += 1) {
      expect(() => worker.handle.send({ type: 'ping', seq })).toThrow('EAGAIN');
    }
    expect(worker.handle.reachable).toBe(true);
  });
});

it.runIf(process.platform === 'linux')('the memory of a worker is read from the kernel', () => {
  const worker = new FakeWorker({ pid: process.pid });
  worker.handle.report({ residentMemoryBytes: 1, requestsTotal: 5 });
  const { residentBytes, requests } = worker.handle.reading();
  expect(residentBytes / process.memoryUsage.rss()).toBeCloseTo(1, 0);
  expect(requests).toBe(5);
});

it('the memory that a worker reports counts if the kernel does not tell it', () => {
  const worker = new FakeWorker({ pid: 2 ** 22 });
  worker.handle.report({ residentMemoryBytes: 7 });
  expect(worker.handle.reading()).toEqual({ residentBytes: 7, requests: 0 });
});

it('connections are sent one at a time, and those that are left are closed when the worker ends', () => {
  const worker = new FakeWorker();
  const handles = [1, 2, 3].map(() => ({ close: vi.fn() }));
  const closed = () => handles.map(({ close }) => close.mock.calls.length);
  worker.clogged = true;
  for (const handle of handles) worker.handle.handOver(handle as never);
  worker.handle.send({ type: 'ping', seq: 1 });
  expect(worker.inbox).toEqual(['connection', 'ping']);

  worker.unclog();
  expect(worker.inbox).toEqual(['connection', 'ping', 'connection', 'connection']);
  expect(closed()).toEqual([1, 1, 1]);

  worker.clogged = true;
  const last = { close: vi.fn() };
  worker.handle.handOver(last as never);
  worker.handle.closeConnections();
  expect(last.close).toHaveBeenCalledOnce();
});

it('a worker that takes no connections makes the primary hold 2,000 of them at most', () => {
  const worker = new FakeWorker();
  const handles = Array.from({ length: 2_002 }, () => ({ close: vi.fn() }));
  worker.clogged = true;
  for (const handle of handles) worker.handle.handOver(handle as never);
  expect(handles.filter(({ close }) => close.mock.calls.length > 0)).toEqual(handles.slice(2_000));
});
