import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ClusterAddressError } from '../../../src/contract/errors/errors.js';
import { FakeCluster } from '../support/fake-cluster.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const start = (workers = 2) => new FakeCluster(workers, { hangTimeoutMs: false });

/** The worker of slot 0 asks for another number. */
function askBy(cluster: FakeCluster, workers: number) {
  const worker = cluster.current(0);
  worker.say({ type: 'scale-request', id: 7, workers });
  return worker;
}

describe('scaling up', () => {
  it('forks the workers that are missing and disturbs nobody', () => {
    const cluster = start(2);
    cluster.scale(4);
    expect(cluster.picture).toEqual([
      '0: gen=0 ready',
      '1: gen=0 ready',
      '2: gen=0 starting',
      '3: gen=0 starting',
    ]);
    expect([cluster.forked.length, cluster.reserved]).toEqual([4, [4]]);
    expect(cluster.supervisor.snapshot().desired).toBe(4);
    expect(cluster.events('scaling')).toEqual([{ from: 2, to: 4, reason: 'test' }]);
  });

  it('is over when all of them are ready, not before', async () => {
    const cluster = start(1);
    const told = cluster.scale(3);
    cluster.newest(2).becomeReady();
    await cluster.settled();
    expect(told).toEqual([]);
    cluster.newest(1).becomeReady();
    await cluster.settled();
    expect(told).toMatchObject([{ desired: 3, ready: 3 }]);
  });

  it('is over also where a new worker fails: it may never become ready', async () => {
    const cluster = start(1);
    const told = cluster.scale(2);
    cluster.newest(1).exit();
    await cluster.settled();
    expect(told).toMatchObject([{ desired: 2, ready: 1 }]);
  });
});

describe('scaling down', () => {
  it('is told at once to a worker that asks: it may be one of those that leave', () => {
    expect(askBy(start(3), 1).sent('answer')).toMatchObject([
      { id: 7, result: { desired: 1, ready: 1 } },
    ]);
  });
});

describe('scaling to the number that there is', () => {
  it('is over at once, and nothing is done or said', async () => {
    const cluster = start(2);
    const told = cluster.scale(2);
    await cluster.settled();
    expect(told).toMatchObject([{ desired: 2, ready: 2 }]);
    expect(cluster.forked).toHaveLength(2);
    expect(cluster.story).toEqual(['worker-ready', 'worker-ready']);
  });
});

describe('a worker more that would have nothing to listen on', () => {
  const taken = new ClusterAddressError(
    'http://127.0.0.1:3002',
    Object.assign(new Error('bind EADDRINUSE'), { code: 'EADDRINUSE' }),
  );

  it.each([taken, new TypeError('not an address')])(
    'is refused, and nothing changes: %s',
    async (error) => {
      const cluster = start(2);
      cluster.refuseToListen = error;
      const told = cluster.scale(3);
      await cluster.settled();
      expect(told).toEqual([error]);
      expect(cluster.supervisor.snapshot().desired).toBe(2);
      expect(cluster.forked).toHaveLength(2);
      expect(cluster.events('scaling')).toEqual([]);
    },
  );
});
