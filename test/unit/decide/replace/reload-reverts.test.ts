import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { FakeCluster } from '../../support/fake-cluster.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const OBSERVE_MS = 20_000;

const start = (workers: number, observeMs = OBSERVE_MS) =>
  new FakeCluster(workers, {
    hangTimeoutMs: false,
    memory: { softLimitBytes: 1e9 },
    reload: { observeMs },
  });

/** Every worker there is, slot by slot. */
const picture = (cluster: FakeCluster) => cluster.picture.toSorted();
const allOf = (generation: number, workers: number) =>
  Array.from({ length: workers }, (_, slot) => `${slot}: gen=${generation} ready`);

/** A worker of a slot is killed from outside, and the next one of its release does not come up. */
function failToComeUp(cluster: FakeCluster, slot: number): void {
  cluster.current(slot).exit({ signal: 'SIGKILL', code: null });
  vi.advanceTimersByTime(200);
  cluster.newest(slot).exit({ code: 1 });
}

/** The first slots run release 1 in a reload of the others. */
function halfway(workers: number, reloaded: number) {
  const cluster = start(workers);
  const told = cluster.deploy('1');
  cluster.replaceSlots(reloaded);
  return { cluster, told };
}

/** Release 1 has been rolled out, and is observed. */
function observed(workers: number, observeMs = OBSERVE_MS) {
  const cluster = start(workers, observeMs);
  cluster.deploy('1');
  cluster.replaceSlots(workers);
  expect(picture(cluster)).toEqual(allOf(1, workers));
  return cluster;
}

describe('a worker of the new release that dies while the reload is under way', () => {
  it('aborts the reload, and the slots that run the release go back to the one before', async () => {
    const { cluster, told } = halfway(4, 2);
    const candidate = cluster.newest(2);
    candidate.becomeReady();

    failToComeUp(cluster, 0);

    expect(candidate.handle.state).toBe('draining');
    vi.advanceTimersByTime(200);
    expect(cluster.forks.slice(-2)).toMatchObject([
      { slot: 1, generation: 0, script: '/app/main.js' },
      { slot: 0, generation: 0, script: '/app/main.js' },
    ]);
    cluster.newest(0).becomeReady();
    candidate.exit({ code: 0 });
    cluster.succeed(1);
    await cluster.settled();
    const reason = 'worker=0 gen=1: exited with code 1';
    expect(told).toEqual([{ outcome: 'aborted', generation: 1, reason }]);
    expect(picture(cluster)).toEqual(allOf(0, 4));
    expect(cluster.events('reload-reverting')).toEqual([{ generation: 1, to: 0, reason }]);
    expect(cluster.supervisor.snapshot()).toMatchObject({
      generation: 0,
      reloads: { completed: 0, aborted: 1, reverted: 0 },
    });
  });

  it('says so where the files of the release before are gone', async () => {
    const { cluster, told } = halfway(3, 2);
    cluster.missing = new Error('/app is not there');
    failToComeUp(cluster, 0);
    await cluster.settled();
    expect(told[0]?.reason).toBe(
      'worker=0 gen=1: exited with code 1; the previous release, gen=0, cannot be restored: /app is not there',
    );
    vi.advanceTimersByTime(1_000);
    expect(cluster.forks.at(-1)).toMatchObject({ slot: 0, generation: 1 });
  });

  it('ends the way back where that fails, and says so', async () => {
    const { cluster, told } = halfway(3, 2);
    failToComeUp(cluster, 0);
    vi.advanceTimersByTime(200);
    cluster.newest(1).exit({ code: 1 });
    await cluster.settled();
    expect(told[0]?.reason).toBe(
      'worker=0 gen=1: exited with code 1; not every worker could be rolled back: worker=1 gen=0: exited with code 1',
    );
    // It serves, and its next worker runs the release before.
    expect(picture(cluster)).toContain('1: gen=1 ready');
    cluster.serving(1).exit({ code: 1 });
    vi.advanceTimersByTime(200);
    expect(cluster.forks.at(-1)).toMatchObject({ slot: 1, generation: 0 });
  });
});

describe('a release that is observed', () => {
  it('goes back, slot by slot, if a worker of it dies', async () => {
    const cluster = observed(3);
    vi.advanceTimersByTime(OBSERVE_MS - 1_000);

    failToComeUp(cluster, 1);

    vi.advanceTimersByTime(200);
    cluster.newest(1).becomeReady();
    expect(cluster.supervisor.snapshot().ready).toBe(3);
    for (const slot of [0, 2]) {
      expect(cluster.newest(slot).handle).toMatchObject({
        identity: { generation: 0 },
        state: 'starting',
      });
      cluster.succeed(slot);
    }
    await cluster.settled();
    expect(picture(cluster)).toEqual(allOf(0, 3));
    const reason = 'worker=1 gen=1: exited with code 1';
    expect(cluster.events('reload-reverting')).toEqual([{ generation: 1, to: 0, reason }]);
    expect(cluster.events('reload-ended').map(({ outcome }) => outcome)).toEqual([
      'completed',
      'reverted',
    ]);
    expect(cluster.supervisor.snapshot()).toMatchObject({
      generation: 0,
      reloads: { completed: 1, aborted: 0, reverted: 1 },
    });
    cluster.scale(4);
    expect(cluster.forks.at(-1)).toMatchObject({ slot: 3, generation: 0 });
  });

  it.each([
    ['once its time is over', OBSERVE_MS, OBSERVE_MS],
    ['with observeMs 0', 0, 0],
  ])('stays %s', (_, observeMs, afterMs) => {
    const cluster = observed(2, observeMs);
    vi.advanceTimersByTime(afterMs);
    cluster.restart(0);
    expect(cluster.forks.at(-1)).toMatchObject({ slot: 0, generation: 1 });
    expect(cluster.events('reload-reverting')).toEqual([]);
  });
});
