import { describe, expect, it } from 'vitest';
import { ClusterConfigurationError } from '../../../../src/contract/errors/index.js';
import {
  checkEnqueueOptions,
  locate,
} from '../../../../src/integrations/bullmq/enqueue-options.js';
import {
  consumedQueues,
  resolveQueueOptions,
} from '../../../../src/integrations/bullmq/queue-options.js';

const connection = { host: 'redis', port: 6379 };

describe('the options of ClusterQueueModule', () => {
  it('have defaults', () => {
    expect(resolveQueueOptions({ connection }, {})).toEqual({
      connection,
      consume: true,
      concurrency: undefined,
      prefix: 'bull',
      callTimeoutMs: 30_000,
      onUnavailable: 'reject',
      maxPayloadBytes: 1_048_576,
      lockMs: 10_000,
      stalledIntervalMs: 5_000,
      maxStalledCount: 3,
      keepMs: 3_600_000,
    });
  });

  it.each([
    ['connection', 'redis'],
    ['connection', { duplicate() {} }],
    ['consume', 'reports'],
    ['consume', ['a:b']],
    ['concurrency', 0],
    ['prefix', 'a b'],
    ['callTimeoutMs', 0],
    ['onUnavailable', 'wait'],
    ['maxPayloadBytes', 10],
    ['lockMs', 99],
    ['stalledIntervalMs', NaN],
    ['maxStalledCount', -1],
    ['keepMs', 2 ** 31],
    ['unknown', 1],
  ])('refuse a wrong %s: %s', (key, value) => {
    const options = { connection, [key]: value } as never;
    expect(() => resolveQueueOptions(options, {})).toThrow(ClusterConfigurationError);
    expect(() => resolveQueueOptions(options, {})).toThrow(key);
  });

  it.each([
    ['true', true],
    ['false', false],
    ['reports', ['reports']],
    ['reports,mails', ['reports', 'mails']],
    ['', ['own']],
  ])('are overridden by CLUSTER_CONSUME=%s', (text, consume) => {
    const env = { CLUSTER_CONSUME: text };
    expect(resolveQueueOptions({ connection, consume: ['own'] }, env).consume).toEqual(consume);
  });

  it('refuse a CLUSTER_CONSUME that names no queue', () => {
    const env = { CLUSTER_CONSUME: 'a,,b' };
    expect(() => resolveQueueOptions({ connection }, env)).toThrow(/CLUSTER_CONSUME/);
  });

  it('refuse to consume a queue that no method has', () => {
    expect(consumedQueues({ consume: true }, ['a', 'b'])).toEqual(['a', 'b']);
    expect(consumedQueues({ consume: false }, ['a'])).toEqual([]);
    expect(consumedQueues({ consume: ['b'] }, ['a', 'b'])).toEqual(['b']);
    // One consumer of each, however often it is named.
    expect(consumedQueues({ consume: ['b', 'b'] }, ['a', 'b'])).toEqual(['b']);
    expect(() => consumedQueues({ consume: ['c'] }, ['a', 'b'])).toThrow(
      'this process is to consume c, and no @CpuBound() method of the app has such a queue (there is a, b)',
    );
  });
});

describe('the options of enqueue()', () => {
  it('have defaults', () => {
    expect(checkEnqueueOptions(undefined)).toEqual({ id: undefined, delay: 0, attempts: 3 });
  });

  // BullMQ would refuse the first two in words of its own, or take them for what they are not.
  it.each([{ id: 'a:b' }, { id: '42' }, { id: '' }, { delay: -1 }, { attempts: 0 }, { every: 1 }])(
    'refuse %o',
    (options) => {
      expect(() => checkEnqueueOptions(options as never)).toThrow(ClusterConfigurationError);
    },
  );

  // A job is at the key of its id: there it would take the place of what all jobs are in.
  it.each(['delayed', 'completed', 'meta', 'wait', 'id', 'stalled-check'])(
    'refuse the id %s, which is a key of the queue',
    (id) => {
      expect(() => checkEnqueueOptions({ id })).toThrow(ClusterConfigurationError);
      expect(locate(`reports/${id}`)).toBeUndefined();
    },
  );

  it('know a job by its queue and its id', () => {
    expect(locate('reports/2026-01')).toEqual({ queue: 'reports', jobId: '2026-01' });
    for (const id of ['reports', 'reports/', 'a/b/c', '../x/y', 'a/b:c', 'a/b c', '']) {
      expect(locate(id)).toBeUndefined();
    }
  });
});
