import { afterEach, describe, expect, it, vi } from 'vitest';
import { MAX_BACKOFF_MS } from '../../../../../src/supervisor/decide/policies/restart.policy.js';
import type { ClusterState } from '../../../../../src/supervisor/decide/cluster-state.js';
import { newCluster } from '../../../../../src/supervisor/decide/transition.js';
import { reasonToGiveUp } from '../../../../../src/supervisor/decide/worker/dead-worker.js';
import { FakeCluster } from '../../../support/fake-cluster.js';

const RELEASE = { generation: 0, script: '/app/main.js', cwd: '/app' };

/** A cluster whose slots have failed so often. */
function cluster(failures: readonly number[], more: Partial<ClusterState> = {}): ClusterState {
  const state = newCluster(failures.length, RELEASE, 0, 1);
  const slots = state.slots.map((slot, index) => {
    const boot = failures[index]!;
    return { ...slot, restarts: boot === 0 ? {} : { boot } };
  });
  return { ...state, slots, ...more };
}

describe('the cluster goes on', () => {
  it.each([
    ['after any number of failures where a worker has been ready', [500, 500], { everReady: true }],
    ['before each slot has had two tries', [2, 1], {}],
    ['after its only slot failed once', [1], {}],
    ['at the start', [0, 0], {}],
    ['while the first boot of a slot may still succeed', [50, 0, 50], {}],
  ])('%s', (_, failures, more) => {
    expect(reasonToGiveUp(cluster(failures, more))).toBeUndefined();
  });

  it('while a candidate boots, which may be of a release that works', () => {
    const request = { slot: 1, cause: 'reload', detail: '', release: RELEASE } as const;
    const replacement = { ...request, phase: 'booting', candidate: 9 } as const;
    expect(reasonToGiveUp(cluster([5, 5], { replacement }))).toBeUndefined();
  });
});

describe('a slot whose process could not even be started', () => {
  afterEach(() => vi.useRealTimers());

  it('is in no crash loop, however often that fails', () => {
    vi.useFakeTimers();
    const cluster = new FakeCluster(1, { hangTimeoutMs: false });
    cluster.fail(0, { signal: 'SIGKILL' });
    for (let tries = 0; tries < 5; tries += 1) {
      vi.advanceTimersByTime(MAX_BACKOFF_MS);
      expect(cluster.fail(0, { code: null, signal: null })).toMatchObject({ degraded: false });
    }
    expect(cluster.events('failed')).toEqual([]);
  });
});

describe('the cluster gives up', () => {
  it.each([[[2]], [[2, 2]], [[1, 4]]])('after failures %j where none became ready', (failures) => {
    const attempts = failures.reduce((sum, each) => sum + each, 0);
    expect(reasonToGiveUp(cluster(failures))).toBe(
      `no worker became ready in ${attempts} attempts`,
    );
  });

  it('and says so where workers were ready but for their threads', () => {
    const served = { url: null, endpoints: [] };
    expect(reasonToGiveUp(cluster([2], { served }))).toBe(
      'no worker stayed up until its threads had loaded, in 2 attempts',
    );
  });
});
