import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { WorkerState } from '../../src/snapshot/index.js';
import { FakeWorker } from './fake-worker.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const STATES: readonly WorkerState[] = ['starting', 'ready', 'draining', 'exited'];

describe('the state of a worker', () => {
  it.each([
    ['starting', ['ready', 'draining', 'exited']],
    ['ready', ['draining', 'exited']],
    ['draining', ['exited']],
    ['exited', []],
  ] as const)('goes from %s to %j and nowhere else', (from, allowed) => {
    for (const to of STATES) {
      const { handle } = new FakeWorker({ state: from });
      const legal = (allowed as readonly WorkerState[]).includes(to);
      expect([to, handle.enter(to)]).toEqual([to, legal]);
      expect(handle.state).toBe(legal ? to : from);
    }
  });
});

describe('a deadline of a worker', () => {
  it('comes after its time', () => {
    const { handle } = new FakeWorker();
    const action = vi.fn();
    handle.after(100, action);
    vi.advanceTimersByTime(99);
    expect(action).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(action).toHaveBeenCalledOnce();
  });

  it('does not come once the process has ended', () => {
    const { handle } = new FakeWorker();
    const action = vi.fn();
    handle.after(100, action);
    handle.after(200, action);
    handle.enter('exited');
    vi.advanceTimersByTime(1_000);
    expect(action).not.toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('the channel of a worker', () => {
  it('carries messages in their envelope', () => {
    const worker = new FakeWorker();
    worker.handle.send({ type: 'ping', seq: 3 });
    expect(worker.sent('ping')).toEqual([{ ns: 'nestjs-cluster', v: 1, type: 'ping', seq: 3 }]);
  });

  it('is not reachable while a message is still on its way', () => {
    const worker = new FakeWorker();
    expect(worker.handle.reachable).toBe(true);
    worker.clogged = true;
    worker.handle.send({ type: 'collect' });
    expect(worker.handle.reachable).toBe(false);
  });

  it('is used no more once it is closed, which is no error', () => {
    const worker = new FakeWorker();
    worker.connected = false;
    expect(() => worker.handle.send({ type: 'collect' })).not.toThrow();
    expect(worker.sent('collect')).toEqual([]);
    expect(worker.handle.reachable).toBe(false);
  });

  it('does not stand in the way of a signal', () => {
    const worker = new FakeWorker();
    worker.connected = false;
    worker.handle.kill('SIGKILL');
    expect(worker.signals).toEqual(['SIGKILL']);
  });
});

describe('a worker that the primary kills for a reason', () => {
  it('keeps the first reason: its exit will not tell', () => {
    const worker = new FakeWorker();
    worker.handle.condemn('hang', 'it did not answer');
    worker.handle.condemn('memory', 'it held too much');
    expect(worker.handle.condemned).toEqual({ cause: 'hang', detail: 'it did not answer' });
    expect(worker.signals).toEqual(['SIGKILL', 'SIGKILL']);
  });
});

describe('the lot of a worker', () => {
  it('is drawn once, between 0 and 1', () => {
    const workers = Array.from({ length: 50 }, () => new FakeWorker().handle);
    const lots = workers.map(({ lot }) => lot);
    expect(workers.map(({ lot }) => lot)).toEqual(lots);
    for (const lot of lots) expect(lot >= 0 && lot < 1).toBe(true);
    expect(new Set(lots).size).toBeGreaterThan(1);
  });
});
