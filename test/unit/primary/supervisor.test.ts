import { beforeEach, describe, expect, it, vi } from 'vitest';
import { ClusterAddressError } from '../../../src/contract/errors/errors.js';
import { FakeCluster } from '../support/fake-cluster.js';

beforeEach(() => vi.useFakeTimers());

const TAKEN = new ClusterAddressError('127.0.0.1:3001', new Error('taken'));

describe('a request', () => {
  it('of a worker is answered by a message with its id', () => {
    const cluster = new FakeCluster(2);
    const [asking, other] = [cluster.newest(1), cluster.newest(0)];
    asking.say({ type: 'scale-request', id: 3, workers: 2 });
    asking.say({ type: 'restart-request', id: 4, slot: 0 });
    cluster.newest(0).becomeReady();
    other.exit({ code: 0 });
    cluster.program = new Error('gone');
    asking.say({ type: 'reload-request', id: 5 });
    const result = { outcome: 'aborted', generation: 1, reason: 'gone' };
    expect(asking.sent('answer')).toMatchObject([
      { id: 3, result: { desired: 2 } },
      { id: 4, result: { outcome: 'completed' } },
      { id: 5, result },
    ]);
    expect(other.inbox).not.toContain('answer');
  });

  it.each([
    ['the address that is taken', TAKEN, { address: '127.0.0.1:3001', message: 'taken' }],
    ['any other error', new Error('odd'), { message: 'odd' }],
  ])('of a worker is refused with %s', (_, error, refusal) => {
    const cluster = new FakeCluster(2);
    cluster.refuseToListen = error;
    cluster.newest(0).say({ type: 'scale-request', id: 5, workers: 3 });
    expect(cluster.newest(0).sent('answer')).toMatchObject([{ id: 5, refusal }]);
  });
});

describe('the loop of the supervisor', () => {
  it('handles an event that a listener causes after the event that is being handled', () => {
    const cluster = new FakeCluster(2);
    cluster.heard = (name) => {
      if (name === 'scaling') cluster.newest(0).exit({ code: 0 });
    };
    void cluster.supervisor.scale(1, 'test');
    cluster.supervisor.stop('test');
    expect(cluster.story.slice(2)).toEqual([
      'scaling',
      'worker-draining',
      'worker-died',
      'worker-restarting',
      'stopping',
    ]);
  });

  it('warns of an effect that throws, and goes on, even if the warning throws', () => {
    for (const fails of [false, true]) {
      const cluster = new FakeCluster(2);
      cluster.newest(0).failsToSend = new Error('EAGAIN');
      cluster.heard = (name) => {
        if (fails && name === 'warning') throw new Error('no space left on device');
      };
      cluster.supervisor.stop('test');
      expect(cluster.newest(1).sent('drain')).toHaveLength(1);
      expect(cluster.events('warning')).toMatchObject([
        { message: 'unexpected error while handling send', error: { message: 'EAGAIN' } },
      ]);
    }
  });
});
