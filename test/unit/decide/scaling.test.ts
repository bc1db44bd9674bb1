import { beforeEach, expect, it, vi } from 'vitest';
import { ClusterAddressError } from '../../../src/contract/errors/errors.js';
import { FakeCluster } from '../support/fake-cluster.js';

beforeEach(() => vi.useFakeTimers());

const start = (workers = 2) => new FakeCluster(workers, { hangTimeoutMs: false });

it('scaling up forks the workers that are missing and disturbs nobody', () => {
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

it('scaling down is told at once to a worker that asks: it may be one of those that leave', () => {
  const worker = start(3).current(0);
  worker.say({ type: 'scale-request', id: 7, workers: 1 });
  expect(worker.sent('answer')).toMatchObject([{ id: 7, result: { desired: 1, ready: 1 } }]);
});

it.each([
  new ClusterAddressError('http://127.0.0.1:3002', { message: 'bind', code: 'EADDRINUSE' }),
  new TypeError('not an address'),
])('a worker more that would have nothing to listen on is refused: %s', async (error) => {
  const cluster = start(2);
  cluster.refuseToListen = error;
  const told = cluster.scale(3);
  await cluster.settled();
  expect(told).toEqual([error]);
  expect(cluster.supervisor.snapshot().desired).toBe(2);
  expect(cluster.forked).toHaveLength(2);
  expect(cluster.events('scaling')).toEqual([]);
});
