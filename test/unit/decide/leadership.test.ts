import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { LEASE_MS, MARGIN_MS, RENEW_MS } from '../../../src/decide/leadership.js';
import { FakeCluster } from '../support/fake-cluster.js';
import type { FakeWorker } from '../support/fake-worker.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

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

/** It answers the last lease that it was given. */
function answer(worker: FakeWorker): void {
  worker.say({ type: 'leads', seq: worker.sent('lead').at(-1)!.seq });
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

  it('is sent nothing where no worker has asked', () => {
    const cluster = new FakeCluster();
    vi.advanceTimersByTime(2 * LEASE_MS);
    cluster.current(0).exit();
    expect(leaderOf(cluster)).toBe(1);
    expect(cluster.forked.flatMap((worker) => worker.sent('lead'))).toEqual([]);
  });

  it('has its lease renewed while it answers', () => {
    const { first } = start();
    for (let i = 0; i < 10; i += 1) {
      answer(first);
      vi.advanceTimersByTime(RENEW_MS);
    }
    const untils = first.sent('lead').map(({ until }) => until);
    expect(untils).toHaveLength(11);
    expect(untils.at(-1)! - untils[0]!).toBe(10 * RENEW_MS);
  });

  it('that does not answer loses the role once its lease is surely over', () => {
    const { cluster, first, second } = start();
    const { until } = first.sent('lead')[0]!;
    vi.advanceTimersByTime(LEASE_MS + MARGIN_MS - 10);
    expect(second.sent('lead')).toEqual([]);
    vi.advanceTimersByTime(10);
    expect(first.sent('lead')).toHaveLength(1);
    expect(second.sent('lead')).toMatchObject([{ since: until }]);
    expect(leaderOf(cluster)).toBe(1);

    answer(first); // the first worker answers again, but the second stays the leader
    expect(leaderOf(cluster)).toBe(1);
    second.exit();
    expect(leaderOf(cluster)).toBe(0);
  });

  it('that drains gives up the role itself', () => {
    const { cluster, first, second } = start();
    cluster.scale(1); // slot 1 leaves
    expect(leaderOf(cluster)).toBe(0);
    cluster.scale(2);
    cluster.newest(1).say({ type: 'lead-request' });
    cluster.newest(1).becomeReady();
    first.say({ type: 'leaving' });
    vi.advanceTimersByTime(100);
    expect(first.inbox).toContain('drain');
    expect(cluster.newest(1).sent('lead')).toEqual([]);
    const at = first.sent('lead')[0]!.until - 500;
    first.say({ type: 'resigned', at });
    expect(cluster.newest(1).sent('lead')).toMatchObject([{ since: at }]);
    expect(second.sent('lead')).toEqual([]);
  });

  it('that exits is followed at once, by one that owns what is due from then on', () => {
    const { first, second } = start();
    const { until } = first.sent('lead')[0]!;
    vi.advanceTimersByTime(100);
    first.exit({ signal: 'SIGKILL' });
    expect(second.sent('lead')[0]!.since).toBeCloseTo(until - LEASE_MS + 105);
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
