import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ClusterOptions } from '../../../../src/contract/options/index.js';
import { FakeCluster } from '../../support/fake-cluster.js';
import { STATS } from '../../support/fake-worker.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const SECOND = 1_000;
const BUSY = 0.9;
const QUIET = 0.05;

const start = (workers: ClusterOptions['workers'] = { min: 1, max: 3 }) =>
  new FakeCluster(workers, { heartbeat: false, shutdown: { drainTimeoutMs: 600 * SECOND } });

/** Lets `seconds` pass, in which each ready worker reports this event loop utilization. */
async function live(cluster: FakeCluster, seconds: number, eventLoopUtilization: number) {
  for (let i = 0; i < seconds; i++) {
    for (const worker of cluster.workers('ready')) {
      worker.lively = true;
      worker.handle.report({ ...STATS, eventLoopUtilization });
    }
    await vi.advanceTimersByTimeAsync(SECOND);
  }
}

/** The workers that were told to leave do. */
function letGo(cluster: FakeCluster): void {
  for (const worker of cluster.workers('draining')) worker.exit({ code: 0 });
}

const numbers = (cluster: FakeCluster) =>
  cluster.events('scaling').map(({ from, to }) => [from, to]);

describe('a number of workers that follows the load', () => {
  it('grows while the workers are busy, one at a time, up to the maximum', async () => {
    const cluster = start();
    expect(cluster.supervisor.snapshot().desired).toBe(1);
    await live(cluster, 12, BUSY);
    expect(cluster.events('scaling')).toEqual([{ from: 1, to: 2, reason: 'the workers are busy' }]);

    await live(cluster, 60, BUSY);
    expect(numbers(cluster)).toEqual([[1, 2]]); // the new worker is not ready
    cluster.newest(1).becomeReady();
    await live(cluster, 12, BUSY);
    cluster.newest(2).becomeReady();
    await live(cluster, 60, BUSY);
    expect(numbers(cluster)).toEqual([
      [1, 2],
      [2, 3],
    ]);
    const { autoscaling, scalings } = cluster.supervisor.snapshot();
    expect(autoscaling).toEqual({ min: 1, max: 3, floor: null });
    expect(scalings).toMatchObject({ 'up utilization': 2, 'up manual': 0, 'down idle': 0 });
  });

  it('tells each worker how many there may be, because they share memory and cores', async () => {
    const cluster = start({ min: 1, max: 3 });
    await live(cluster, 12, BUSY);
    void cluster.supervisor.scale(5, 'test');
    expect(cluster.assigned).toEqual([3, 3, 5, 5, 5]);
  });

  it('shrinks down to the minimum, one at a time', async () => {
    const cluster = start({ min: 1, max: 3 });
    void cluster.supervisor.scale(3, 'test');
    for (const slot of [1, 2]) cluster.newest(slot).becomeReady();
    void cluster.supervisor.scale('auto', 'test');
    await live(cluster, 62, QUIET);
    await live(cluster, 200, QUIET);
    expect(numbers(cluster).slice(1)).toEqual([[3, 2]]); // the old worker has not left
    letGo(cluster);
    await live(cluster, 62, QUIET);
    letGo(cluster);
    await live(cluster, 200, QUIET);
    expect(numbers(cluster).slice(1)).toEqual([
      [3, 2],
      [2, 1],
    ]);
    expect(cluster.events('worker-draining').map(({ cause }) => cause)).toEqual(['scale', 'scale']);
  });

  it('counts a worker that does not answer as busy', async () => {
    const cluster = start();
    cluster.newest(0).handle.report({ ...STATS, eventLoopUtilization: 0 });
    await vi.advanceTimersByTimeAsync(15 * SECOND); // no ping is answered
    expect(numbers(cluster)).toEqual([[1, 2]]);
  });

  it('stays while a reload is under way', async () => {
    const cluster = start({ min: 1, max: 3 });
    void cluster.supervisor.reload('test');
    await live(cluster, 20, BUSY);
    expect(numbers(cluster)).toEqual([]);
  });

  it('is not below the number that somebody asked for, until it is "auto" again', async () => {
    const cluster = start();
    void cluster.supervisor.scale(2, 'test');
    cluster.newest(1).becomeReady();
    await live(cluster, 200, QUIET);
    expect(cluster.supervisor.snapshot()).toMatchObject({
      desired: 2,
      autoscaling: { min: 1, max: 3, floor: 2 },
    });
    await live(cluster, 12, BUSY);
    expect(cluster.supervisor.snapshot().desired).toBe(3);
    cluster.newest(2).becomeReady();

    void cluster.supervisor.scale('auto', 'test');
    await live(cluster, 62, QUIET);
    letGo(cluster);
    await live(cluster, 62, QUIET);
    expect(cluster.supervisor.snapshot()).toMatchObject({
      desired: 1,
      autoscaling: { floor: null },
      scalings: { 'up manual': 1, 'up utilization': 1, 'down idle': 2 },
    });
  });

  it('comes back within its bounds at once when it is "auto" again', () => {
    const cluster = start({ min: 2, max: 3 });
    void cluster.supervisor.scale(6, 'test');
    void cluster.supervisor.scale('auto', 'test');
    void cluster.supervisor.scale(1, 'test');
    expect(numbers(cluster)).toEqual([
      [2, 6],
      [6, 3],
      [3, 2],
    ]);
  });

  it('stays fixed where it is a number', async () => {
    const cluster = start(2);
    await live(cluster, 100, BUSY);
    await live(cluster, 100, QUIET);
    expect(numbers(cluster)).toEqual([]);
    expect(cluster.supervisor.snapshot()).toMatchObject({ autoscaling: null });
  });
});
