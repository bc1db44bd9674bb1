import { expect, it } from 'vitest';
import { ClusterQueues } from '../../../../src/integrations/bullmq/cluster-queues.js';
import { pack } from '../../../../src/integrations/bullmq/redis/encoding.js';
import { CpuBound, TaskRejectedException } from '../../../../src/offload/index.js';

/** An app whose methods have the queue "reports" alone. */
const queuesWith = (queue: object) => {
  const has = (name: string) => name === 'reports';
  const client = async () => ({ has, queue: () => queue });
  return new ClusterQueues(undefined as never, { client } as never);
};

it.each([
  'others/1',
  'reports',
  '',
  'no queue/1',
  'reports/delayed',
  '../reports/1',
  'reports/a b',
])('nothing is looked up by %j, which is not the id of a job of this app', async (id) => {
  const ask = () => Promise.reject(new Error('it was looked up'));
  const queues = queuesWith({ getJobState: ask, getJob: ask });
  expect(await queues.job(id)).toBeUndefined();
  expect(await queues.job(undefined as never)).toBeUndefined();
});

it('a method whose queue no method of this app has is not enqueued', async () => {
  class Elsewhere {
    @CpuBound({ queue: 'others' })
    made(n: number): number {
      return n;
    }
  }
  await expect(queuesWith({}).enqueue(Elsewhere, 'made', [1])).rejects.toThrow(
    'Elsewhere.made cannot be enqueued: no method of this app has queue: "others"; add its class to the providers of a module',
  );
});

it('a job that was begun twice says so, also where its first consumer was killed', async () => {
  const job = { name: 'Reports.add', attemptsMade: 1, attemptsStarted: 2, returnvalue: 3 };
  const queue = { getJobState: async () => 'completed', getJob: async () => job };
  expect(await queuesWith(queue).job('reports/1')).toMatchObject({ attempts: 2 });
});

it('a job that ends while it is looked up is not told of as completed without its result', async () => {
  let looks = 0;
  const isOver = (): boolean => (looks += 1) > 1;
  const stateOf = async () => (isOver() ? 'completed' : 'active');
  const queue = {
    getJobState: stateOf,
    getJob: async () =>
      isOver()
        ? { name: 'Reports.add', attemptsStarted: 1, returnvalue: pack(3, 'it'), getState: stateOf }
        : { name: 'Reports.add', attemptsStarted: 1, returnvalue: null, getState: stateOf },
  };
  const queues = queuesWith(queue);
  expect(await queues.job('reports/1')).toMatchObject({ state: 'active', attempts: 1 });
  expect(await queues.job('reports/1')).toMatchObject({ state: 'completed', result: 3 });
});

it('a job that Redis is lost under is told of as not looked up: 503', async () => {
  const getJobState = () => Promise.reject(new Error('Connection is closed.'));
  const answer = queuesWith({ getJobState }).job('reports/1');
  await expect(answer).rejects.toBeInstanceOf(TaskRejectedException);
  await expect(answer).rejects.toThrow(
    /^reports\/1 was not looked up: its queue cannot be reached$/,
  );
});

it('a job whose result cannot be read is no queue that cannot be reached', async () => {
  const job = { name: 'Reports.add', attemptsMade: 1, returnvalue: { $: 'eval', v: 'x' } };
  const queue = { getJobState: async () => 'completed', getJob: async () => job };
  await expect(queuesWith(queue).job('reports/1')).rejects.toThrow('an unknown kind of value');
});
