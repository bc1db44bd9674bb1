import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { FakeCluster } from '../support/fake-cluster.js';
import { FakeWorker } from '../support/fake-worker.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

describe('the state of a worker', () => {
  it('goes from starting to ready, draining and exited, and never back', () => {
    const cluster = new FakeCluster(1, {}, 'starting');
    const worker = cluster.newest(0);
    const [error, states] = [{ name: 'Error', message: 'x' }, [worker.handle.state]];
    for (const next of [
      () => worker.becomeReady(),
      () => worker.say({ type: 'fatal', error, abort: false, requests: [] }),
      () => worker.exit(),
    ]) {
      next();
      worker.becomeReady();
      states.push(worker.handle.state);
    }
    worker.exit();
    expect(states).toEqual(['starting', 'ready', 'draining', 'exited']);
    expect(cluster.story).toEqual([
      'worker-ready',
      'worker-failing',
      'worker-restarting',
      'worker-died',
    ]);
  });
});

it('the channel of a worker carries messages in their envelope', () => {
  const worker = new FakeWorker();
  worker.handle.send({ type: 'ping', seq: 3 });
  expect(worker.sent('ping')).toEqual([{ ns: 'nestjs-cluster', v: 1, type: 'ping', seq: 3 }]);
});
