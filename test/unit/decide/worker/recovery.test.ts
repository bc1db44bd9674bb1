import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ClusterOptions } from '../../../../src/contract/options/resolve.js';
import { FakeCluster } from '../../support/fake-cluster.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

/** Nobody is judged by the pings that nobody answers here. */
function start(workers = 2, state?: 'starting') {
  const options: ClusterOptions = {
    hangTimeoutMs: false,
    rebalance: false,
    readyTimeoutMs: 900_000,
  };
  const cluster = new FakeCluster(workers, options, state);
  return {
    cluster,
    /** The worker of a slot fails; its next one serves. */
    fail: (slot: number, exit?: Parameters<FakeCluster['fail']>[1]) =>
      cluster.restart(slot, exit).becomeReady(),
    degraded: () => {
      const { degraded, workers: all } = cluster.supervisor.snapshot();
      const slots = new Set(all.filter((worker) => worker.degraded).map(({ slot }) => slot));
      expect(degraded).toBe(slots.size);
      return [...slots];
    },
  };
}

describe('a slot whose worker failed', () => {
  it('is started again after the delay that is said, not before', () => {
    const { cluster } = start();
    expect(cluster.fail(1)).toEqual({ slot: 1, delayMs: 100, failures: 1, degraded: false });
    vi.advanceTimersByTime(98); // what is left of the jitter may take the last one
    expect(cluster.forked).toHaveLength(2);
    vi.advanceTimersByTime(2);
    expect(cluster.picture).toEqual(['0: gen=0 ready', '1: gen=0 starting']);
  });

  it('is degraded with its fifth failure, and is said to be', () => {
    const { cluster, fail, degraded } = start();
    expect(degraded()).toEqual([]);
    for (let i = 0; i < 4; i += 1) fail(0);
    expect(degraded()).toEqual([]);
    expect(cluster.fail(0)).toEqual({ slot: 0, delayMs: 1_000, failures: 5, degraded: true });
    expect(degraded()).toEqual([0]);
    expect(cluster.story).not.toContain('failed');
  });
});

describe('the cluster', () => {
  const failed = ({ cluster }: ReturnType<typeof start>) => cluster.events('failed');

  it('waits for the first boot of a slot, however often the others failed, and no longer', () => {
    const started = start(2, 'starting');
    const { cluster } = started;
    for (let i = 0; i < 10; i += 1) cluster.restart(0);
    expect(failed(started)).toEqual([]);
    cluster.fail(1);
    expect(failed(started)).toMatchObject([{ message: 'no worker became ready in 11 attempts' }]);
  });

  it('that has served never ends by itself, however often all of its workers fail', () => {
    const started = start(2);
    const { cluster, degraded } = started;
    for (let i = 0; i < 100; i += 1) started.fail(i % 2);
    expect(degraded()).toEqual([0, 1]);
    for (let i = 0; i < 20; i += 1) cluster.restart(i % 2); // none comes up
    expect(cluster.fail(0)).toMatchObject({ delayMs: 15_000 });
    expect(failed(started)).toEqual([]);
    expect(cluster.supervisor.snapshot()).toMatchObject({ ready: 0, degraded: 2 });
    vi.advanceTimersByTime(15_000);
    cluster.newest(0).becomeReady();
    expect(cluster.supervisor.snapshot()).toMatchObject({ ready: 1 });
  });

  it('points to the output of a worker that reported none', () => {
    const started = start(1, 'starting');
    started.cluster.restart(0);
    started.cluster.fail(0);
    const message = 'exited with code 1; see its output above';
    expect(failed(started)).toMatchObject([{ error: { message } }]);
  });
});
