import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { ClusterStatus } from '../../../src/control/cluster-status.js';
import { watched } from '../../../src/cli/view/watched.js';
import { FakeControlClient, STATUS } from '../support/fake-control-client.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** The status of a reload to generation 1, whose workers have these generations. */
const reloaded = (...generations: number[]): ClusterStatus => {
  const workers = generations.map((generation) => ({ generation, state: 'ready' }));
  return { ...STATUS, cluster: { ...STATUS.cluster, generation: 1, workers: workers as never } };
};

it('prints how far a change is, and warns of a primary that does not answer', async () => {
  let printed = '';
  for (const stream of [process.stdout, process.stderr]) {
    const write = (text: unknown) => ((printed += String(text)), true);
    vi.spyOn(stream, 'write').mockImplementation(write);
  }
  const client = new FakeControlClient(reloaded(0, 0));
  const seconds = (count: number) => vi.advanceTimersByTimeAsync(count * 1_000);
  try {
    const answer = await watched(client, true, async () => {
      await seconds(2);
      client.status = reloaded(1, 0);
      await seconds(1);
      client.status = new Error('it is blocked');
      await seconds(2);
      return 'done';
    });
    expect(answer).toBe('done');
    await seconds(5);
  } finally {
    vi.restoreAllMocks();
  }
  expect(printed).toBe(
    'workers: 2 ready (0 of generation 1)\n' +
      'workers: 2 ready (1 of generation 1)\n' +
      'the primary does not answer: it is blocked or stopped; waiting for it\n',
  );
  expect(vi.getTimerCount()).toBe(0);
});
