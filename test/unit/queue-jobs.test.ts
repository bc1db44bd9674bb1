import { expect, it } from 'vitest';
import { ClusterQueues } from '../../src/extras/bullmq/cluster-queues.js';
import { pack } from '../../src/extras/bullmq/encoding.js';
import { TaskRejectedException } from '../../src/offload/index.js';

it('a job that ends while it is looked up is not told of as completed without its result', async () => {
  let looks = 0;
  const isOver = (): boolean => (looks += 1) > 1;
  const stateOf = async () => (isOver() ? 'completed' : 'active');
  const queue = {
    getJobState: stateOf,
    getJob: async () =>
      isOver()
        ? { name: 'Reports.add', attemptsMade: 1, returnvalue: pack(3, 'it'), getState: stateOf }
        : { name: 'Reports.add', attemptsMade: 0, returnvalue: null, getState: stateOf },
  };
  const runner = { client: async () => ({ queue: () => queue }) };
  const queues = new ClusterQueues(undefined as never, runner as never);
  expect(await queues.job('reports/1')).toMatchObject({ state: 'active', attempts: 1 });
  expect(await queues.job('reports/1')).toMatchObject({ state: 'completed', result: 3 });
});

/** A queue of which one look fails. */
const queuesWith = (queue: object) =>
  new ClusterQueues(undefined as never, { client: async () => ({ queue: () => queue }) } as never);

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
