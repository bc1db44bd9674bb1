import { ClusterConfigurationError } from 'nestjs-cluster/bootstrap';
import { expect, it } from 'vitest';
import { consumedQueues, resolveQueueOptions } from '../../src/options.js';

const connection = { host: '127.0.0.1' };

it.each([
  [{ connection: 1 }, 'connection: ioredis options'],
  [{ connection, concurrency: 0 }, 'concurrency: a whole number from 1 to 1000'],
  [{ connection, onUnavailable: 'wait' }, "onUnavailable: 'reject' or 'local'"],
  [{ connection, lockMs: 1 }, 'lockMs'],
])('refuses %j, and names the key', (options, message) => {
  const resolve = () => resolveQueueOptions(options as never, {});

  expect(resolve).toThrow(ClusterConfigurationError);
  expect(resolve).toThrow(message);
});

it('lets CLUSTER_CONSUME choose the queues', () => {
  const consumeOf = (CLUSTER_CONSUME: string) =>
    resolveQueueOptions({ connection, consume: false }, { CLUSTER_CONSUME }).consume;

  expect(['', 'true', 'false', 'a,b'].map(consumeOf)).toEqual([false, true, false, ['a', 'b']]);
  expect(() => consumeOf('a b')).toThrow(ClusterConfigurationError);
});

it('refuses to consume a queue that no method has', () => {
  expect(consumedQueues({ consume: ['b'] }, ['a', 'b'])).toEqual(['b']);
  expect(() => consumedQueues({ consume: ['c'] }, ['a', 'b'])).toThrow('known: a, b');
});
