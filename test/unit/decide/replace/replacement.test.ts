import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { MAX_FAILURES } from '../../../../src/decide/policies/restart.policy.js';
import { CANARY_MS } from '../../../../src/decide/replace/replacement.js';
import type { ClusterOptions } from '../../../../src/contract/options/index.js';
import { FakeCluster } from '../../support/fake-cluster.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const CHECK_TIMEOUT_MS = 2_000;
const CRASH = { code: 1 };
const WELL = { code: 0 };

const start = (workers = 2, options: ClusterOptions = {}) =>
  new FakeCluster(workers, {
    hangTimeoutMs: false,
    memory: { softLimitBytes: 1e9 },
    ...options,
  });

/** A cluster whose reload has started the new worker of slot 0. */
function reloading(workers = 2, options: ClusterOptions = {}) {
  const cluster = start(workers, options);
  const old = cluster.current(0);
  const told = cluster.reload();
  return { cluster, old, told, candidate: cluster.newest(0) };
}

/** Slots of the workers that were forked since the start, in order. */
const forkedLater = (cluster: FakeCluster, workers = 2) =>
  cluster.forks.slice(workers).map(({ slot }) => slot);

const restarted = (cluster: FakeCluster) =>
  cluster.events('worker-restarting').map(({ slot }) => slot);

describe('a worker that is replaced by a reload', () => {
  it('serves on beside the new one until that is ready, old enough and well', () => {
    const { cluster, old, candidate } = reloading();
    const undisturbed = () => {
      expect([old.handle.state, old.sent('drain')]).toEqual(['ready', []]);
    };

    undisturbed();
    candidate.becomeReady();
    undisturbed();
    vi.advanceTimersByTime(CANARY_MS - 1);
    expect(candidate.sent('check')).toEqual([]);
    undisturbed();
    vi.advanceTimersByTime(1);
    expect(candidate.sent('check')).toHaveLength(1);
    undisturbed();

    candidate.answerCheck(true);
    expect(old.sent('drain')).toMatchObject([{ cause: 'reload' }]);
    expect(cluster.current(0)).toBe(candidate);
    // From now on the slot is the new one's: what comes after it is of its release.
    candidate.exit(CRASH);
    vi.advanceTimersByTime(1_000);
    expect(cluster.forks.slice(2)).toMatchObject([
      { slot: 0, generation: 1 },
      { slot: 0, generation: 1 },
    ]);
  });

  it('is ended by a signal where it was itself still starting', () => {
    const cluster = new FakeCluster(1, {}, 'starting');
    cluster.reload();
    expect(cluster.takeOver().signals).toEqual(['SIGTERM']);
  });
});

describe('the past of a slot', () => {
  it('is that of the next worker too, where that runs the same code', () => {
    const cluster = start();
    cluster.crash(0, 2);
    cluster.newest(0).becomeReady();
    cluster.outgrow(0);
    cluster.newest(0).becomeReady();
    cluster.crash(0);
    expect(cluster.events('worker-restarting').map(({ failures }) => failures)).toEqual([1, 2, 3]);
  });

  it('is forgotten with the other code that a reload brings, once that has proven itself', () => {
    const cluster = start(2, {});
    cluster.crash(0, MAX_FAILURES);
    cluster.newest(0).becomeReady();
    cluster.reload();
    const candidate = cluster.reachCheck(0);
    expect(cluster.supervisor.snapshot().degraded).toBe(1);
    candidate.answerCheck(true);
    expect(cluster.supervisor.snapshot().degraded).toBe(0);
    cluster.crash(0);
    expect(cluster.events('worker-restarting').at(-1)).toMatchObject({
      failures: 1,
      degraded: false,
    });
  });
});

describe('one slot at a time', () => {
  it('is replaced also where the one before fails', () => {
    const cluster = start();
    const old = cluster.current(1);
    cluster.outgrow(0);
    cluster.outgrow(1);
    cluster.newest(0).exit(CRASH);
    expect(forkedLater(cluster)).toEqual([0, 1]);
    cluster.newest(1).becomeReady();
    expect(old.sent('drain')).toMatchObject([{ cause: 'memory' }]);
  });

  it('is replaced also where one replacement asks for the next', async () => {
    const { cluster, told } = reloading();
    cluster.outgrow(1);
    cluster.takeOver().exit(WELL);
    const recycled = cluster.current(1);
    cluster.newest(1).becomeReady();
    recycled.exit(WELL);
    cluster.replaceSlots(1);
    expect(cluster.forks.slice(2)).toMatchObject([
      { slot: 0, generation: 1 },
      { slot: 1, generation: 0 },
      { slot: 1, generation: 1 },
    ]);
    await cluster.settled();
    expect(told).toMatchObject([{ outcome: 'completed' }]);
  });

  it('is of concern while it waits, while the new one proves itself and while the old one drains', () => {
    const { cluster, old } = reloading(1);
    cluster.outgrow(0); // it will be anyway
    cluster.takeOver();
    cluster.outgrow(0); // its predecessor drains
    expect(forkedLater(cluster, 1)).toEqual([0]);
    old.exit(WELL);
    expect(forkedLater(cluster, 1)).toEqual([0]);

    cluster.scale(2);
    cluster.newest(1).becomeReady();
    cluster.outgrow(0);
    for (const _ of [1, 2]) cluster.outgrow(1); // it waits already
    for (const slot of [0, 1]) {
      const before = cluster.current(slot);
      cluster.newest(slot).becomeReady();
      before.exit(WELL);
    }
    expect(forkedLater(cluster, 1)).toEqual([0, 1, 0, 1]);
  });
});

describe('a candidate that fails', () => {
  const WAYS: readonly [string, string, (cluster: FakeCluster) => void][] = [
    ['at boot', 'exited with code 1', (cluster) => cluster.newest(0).exit(CRASH)],
    [
      'within its canary time',
      'exited with code 1',
      (cluster) => {
        cluster.newest(0).becomeReady();
        vi.advanceTimersByTime(CANARY_MS - 1);
        cluster.newest(0).exit(CRASH);
      },
    ],
    [
      'while its health is checked',
      'killed by SIGSEGV',
      (cluster) => cluster.reachCheck(0).exit({ signal: 'SIGSEGV' }),
    ],
    [
      'by its health check',
      'its health check failed: database: refused',
      (cluster) => cluster.reachCheck(0).answerCheck(false, 'database: refused'),
    ],
    [
      'by its health check, without saying why',
      'its health check failed: no reason given',
      (cluster) => cluster.reachCheck(0).answerCheck(false),
    ],
    [
      'by a health check that does not end',
      'its health check took longer than 2000 ms',
      (cluster) => {
        const candidate = cluster.reachCheck(0);
        vi.advanceTimersByTime(CHECK_TIMEOUT_MS - 1);
        expect(candidate.handle.state).toBe('ready');
        vi.advanceTimersByTime(1);
      },
    ],
    [
      'by leaving of its own accord',
      'it was told to leave by a signal of its own',
      (cluster) => {
        cluster.newest(0).becomeReady();
        cluster.newest(0).say({ type: 'leaving' });
        vi.advanceTimersByTime(100);
      },
    ],
  ];

  it.each(WAYS)('%s leaves the old worker in its place, and the reason', async (_, why, fail) => {
    const { cluster, old, told, candidate } = reloading();
    fail(cluster);
    await cluster.settled();
    expect(told).toEqual([{ outcome: 'aborted', generation: 1, reason: `worker=0 gen=1: ${why}` }]);
    expect(cluster.current(0)).toBe(old);
    expect([old.handle.state, old.sent('drain'), old.signals]).toEqual(['ready', [], []]);
    expect(restarted(cluster)).toEqual([]);
    // A later verdict changes nothing.
    candidate.answerCheck(true);
    candidate.exit(CRASH);
    vi.advanceTimersByTime(60_000);
    expect(cluster.events('reload-ended')).toHaveLength(1);
    expect([cluster.current(0), cluster.forked.length]).toEqual([old, 3]);
    // Neither the new code nor the replacement has left anything behind.
    cluster.outgrow(0);
    expect(cluster.forks.at(-1)).toMatchObject({ slot: 0, generation: 0 });
  });

  it.each([
    ['its health check failed', false],
    ['its health check took too long', true],
  ])('is drained where it still runs: %s', (_, silent) => {
    const { cluster } = reloading();
    const candidate = cluster.reachCheck(0);
    if (silent) vi.advanceTimersByTime(CHECK_TIMEOUT_MS);
    else candidate.answerCheck(false, 'no');
    expect(candidate.sent('drain')).toMatchObject([{ cause: 'reload' }]);
    expect(cluster.picture).toContain('0: gen=1 draining');
    expect(cluster.events('worker-draining')).toEqual([
      { worker: candidate.handle.identity, cause: 'reload' },
    ]);
  });

  it('leaves a slot that has lost its old worker meanwhile to be restarted, once', () => {
    const { cluster, old, candidate } = reloading();
    old.exit(CRASH);
    expect(restarted(cluster)).toEqual([]);
    candidate.exit(CRASH);
    expect(restarted(cluster)).toEqual([0]);
    expect(cluster.events('reload-ended')).toMatchObject([{ outcome: 'aborted' }]);
    vi.advanceTimersByTime(1_000);
    expect(cluster.forks.slice(3)).toMatchObject([{ slot: 0, generation: 0 }]);
  });
});

describe('the verdict of a health check', () => {
  it('counts only of the worker that was asked', () => {
    const { cluster, old } = reloading();
    const candidate = cluster.reachCheck(0);
    old.answerCheck(true);
    cluster.current(1).answerCheck(false, 'no');
    expect([old.sent('drain'), cluster.events('reload-ended')]).toEqual([[], []]);
    candidate.answerCheck(true);
    expect(old.sent('drain')).toHaveLength(1);
  });

  it('is not asked of a worker that is on its way out', () => {
    const { candidate } = reloading();
    candidate.becomeReady();
    candidate.collapse();
    vi.advanceTimersByTime(CANARY_MS);
    expect(candidate.sent('check')).toEqual([]);
  });

  it('counts once', () => {
    const { cluster, old } = reloading();
    const candidate = cluster.reachCheck(0);
    candidate.answerCheck(true);
    candidate.answerCheck(false, 'changed its mind');
    vi.advanceTimersByTime(CHECK_TIMEOUT_MS);
    expect([old.sent('drain').length, candidate.sent('drain').length]).toEqual([1, 0]);
    expect(cluster.events('reload-ended')).toEqual([]);
    expect(cluster.current(0)).toBe(candidate);
  });

  it('does not count of a worker that is on its way out', () => {
    const { cluster, old } = reloading();
    const candidate = cluster.reachCheck(0);
    candidate.collapse();
    candidate.answerCheck(true);
    candidate.exit(CRASH);
    expect(cluster.current(0)).toBe(old);
    expect(cluster.events('reload-ended')).toMatchObject([
      { reason: 'worker=0 gen=1: TypeError: x is undefined' },
    ]);
  });

  it('does not count before the question: a worker that volunteers is not trusted', () => {
    const { old, candidate } = reloading();
    candidate.becomeReady();
    candidate.answerCheck(true);
    expect(old.sent('drain')).toEqual([]);
  });
});

describe('an old worker that is gone before the new one is ready', () => {
  it('is succeeded all the same, and nobody is waited for', () => {
    const { cluster, old, candidate } = reloading();
    old.exit(CRASH);
    cluster.takeOver(0);
    expect(cluster.current(0)).toBe(candidate);
    expect(forkedLater(cluster)).toEqual([0, 1]);
    expect(restarted(cluster)).toEqual([]);
  });

  it('calls off the restart that was due: there would be two', () => {
    const cluster = start();
    cluster.current(0).exit(CRASH);
    expect(restarted(cluster)).toEqual([0]);
    cluster.reload();
    vi.advanceTimersByTime(1_000);
    expect(cluster.forks.slice(2)).toMatchObject([{ slot: 0, generation: 1 }]);
  });
});

describe('an old worker that drains', () => {
  it('is waited for until its process has ended, whatever else is said of it', () => {
    const { cluster } = reloading();
    const old = cluster.takeOver();
    expect(cluster.picture).toContain('0: gen=0 draining');
    old.say({ type: 'leaving' });
    old.collapse();
    vi.advanceTimersByTime(1_000);
    expect(forkedLater(cluster)).toEqual([0]);
    old.exit(WELL);
    expect([forkedLater(cluster), restarted(cluster)]).toEqual([[0, 1], []]);
  });
});

describe('a slot that is not wanted any more', () => {
  it('is passed over when its turn comes', () => {
    const cluster = start(3);
    for (const slot of [0, 2, 1]) cluster.outgrow(slot);
    cluster.scale(2);
    const old = cluster.current(0);
    cluster.newest(0).becomeReady();
    old.exit(WELL);
    expect(forkedLater(cluster, 3)).toEqual([0, 1]);
  });

  it.each(['reload', 'recycle'])('ends its replacement (%s) without a failure', (cause) => {
    const cluster = start();
    if (cause === 'reload') {
      cluster.reload();
      cluster.replaceSlots(1);
    } else {
      cluster.outgrow(1);
    }
    const candidate = cluster.newest(1);
    cluster.scale(1);
    candidate.exit({ signal: 'SIGTERM' });
    expect(cluster.events('warning')).toEqual([]);
    expect(cluster.events('reload-ended').map(({ outcome }) => outcome)).toEqual(
      cause === 'reload' ? ['completed'] : [],
    );
    expect(restarted(cluster)).toEqual([]);
    expect(cluster.supervisor.snapshot()).toMatchObject({ desired: 1, ready: 1 });
  });

  it('does not come back with a candidate that is well but has been told to leave', () => {
    const { cluster } = reloading();
    cluster.replaceSlots(1);
    const candidate = cluster.reachCheck(1);
    cluster.scale(1);
    candidate.answerCheck(true);
    expect(cluster.picture).toEqual(['1: gen=0 draining', '0: gen=1 ready', '1: gen=1 draining']);
    expect(cluster.events('reload-ended')).toMatchObject([{ outcome: 'completed' }]);
  });

  it('keeps the worker that it was given when it was wanted again', () => {
    const { cluster } = reloading();
    cluster.replaceSlots(1);
    const candidate = cluster.reachCheck(1);
    cluster.scale(1);
    cluster.scale(2);
    const next = cluster.newest(1);
    candidate.answerCheck(true);
    candidate.exit(WELL);
    expect(cluster.current(1)).toBe(next);
    expect([next.handle.state, ...next.signals]).toEqual(['starting']);
  });
});

describe('a cluster that shuts down', () => {
  it('replaces nobody any more, and says so to whoever reloads', async () => {
    const { cluster, candidate, told } = reloading(3);
    cluster.outgrow(1);
    cluster.supervisor.stop('test');
    const later = cluster.reload();
    candidate.becomeReady();
    vi.advanceTimersByTime(CANARY_MS);
    candidate.exit(CRASH);
    vi.advanceTimersByTime(60_000);
    await cluster.settled();
    const aborted = { outcome: 'aborted', reason: 'the cluster is shutting down' };
    expect(told).toEqual([{ ...aborted, generation: 1 }]);
    expect(later).toEqual([{ ...aborted, generation: 0 }]);
    expect([candidate.sent('check'), restarted(cluster)]).toEqual([[], []]);
    expect(cluster.forked).toHaveLength(4);
  });

  it('says so also to a reload whose last old worker still drains', async () => {
    const { cluster, told } = reloading();
    cluster.replaceSlots(1);
    const old = cluster.takeOver();
    cluster.outgrow(0);
    cluster.supervisor.stop('test');
    old.exit(WELL);
    await cluster.settled();
    expect(told).toMatchObject([{ outcome: 'aborted', reason: 'the cluster is shutting down' }]);
    expect(cluster.forked).toHaveLength(4);
  });

  it('has nothing to say of what nobody waits for', () => {
    const cluster = start();
    cluster.outgrow(0);
    cluster.outgrow(1);
    cluster.supervisor.stop('test');
    for (const worker of cluster.workers()) worker.exit(WELL);
    expect(cluster.events('warning')).toEqual([]);
    expect(cluster.forked).toHaveLength(3);
  });
});
