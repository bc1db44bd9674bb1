import { beforeEach, describe, expect, it, vi } from 'vitest';
import { FakeCluster } from '../support/fake-cluster.js';
import type { FakeWorker } from '../support/fake-worker.js';

beforeEach(() => void vi.useFakeTimers());

/** Both workers have asked; the first one leads. */
function start(): { cluster: FakeCluster; first: FakeWorker; second: FakeWorker } {
  const cluster = new FakeCluster(2, {}, 'starting');
  const [first, second] = cluster.forked as [FakeWorker, FakeWorker];
  for (const worker of [first, second]) worker.say({ type: 'lead-request' });
  first.becomeReady();
  vi.advanceTimersByTime(5);
  second.becomeReady();
  return { cluster, first, second };
}

/** The leader of the snapshot, by its slot. */
function leaderOf(cluster: FakeCluster): number | undefined {
  return cluster.supervisor.snapshot().leader?.slot;
}

describe('the leader', () => {
  it('is the worker that has been ready longest, and is told so if it has asked', () => {
    const { cluster, first, second } = start();
    expect(leaderOf(cluster)).toBe(0);
    expect(cluster.events('leader').map(({ worker }) => worker?.slot)).toEqual([0]);
    expect(first.sent('lead')).toMatchObject([{ seq: 1, done: [] }]);
    expect(first.sent('lead')[0]).not.toHaveProperty('since');
    expect(second.sent('lead')).toEqual([]);
  });

  it('knows what has begun that is to run once', () => {
    const { first, second } = start();
    for (const job of ['Cache.warm', 'Cache.warm', 'Mails.send']) {
      first.say({ type: 'job-begun', job });
    }
    first.exit();
    expect(second.sent('lead')[0]).toMatchObject({ done: ['Cache.warm', 'Mails.send'] });
  });
});
