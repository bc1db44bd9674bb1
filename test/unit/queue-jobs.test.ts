import { expect, it } from 'vitest';
import { ClusterQueues } from '../../src/extras/bullmq/cluster-queues.js';
import { pack } from '../../src/extras/bullmq/encoding.js';

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
