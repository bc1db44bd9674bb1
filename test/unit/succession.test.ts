import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { NO_FAILURES } from '../../src/primary/policies/restart.policy.js';
import type { ReplaceCause } from '../../src/snapshot/index.js';
import { FakeCluster, releaseOf } from './fake-cluster.js';
import type { FakeWorker } from './fake-worker.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const CANARY_MS = 1_000;
const CHECK_TIMEOUT_MS = 2_000;

const start = (workers = 2) => new FakeCluster(workers, { reload: { canaryMs: CANARY_MS } });

/** Asks for the replacement of a slot; keeps what is told of it. */
function replace(cluster: FakeCluster, index: number, cause: ReplaceCause = 'reload') {
  const told: (string | null)[] = [];
  const slot = cluster.slot(index);
  cluster.succession.request({
    slot,
    cause,
    release: cause === 'reload' ? releaseOf(1) : slot.release,
    started: () => told.push('started'),
    tookOver: () => told.push('took over'),
    ended: (failure) => told.push(failure === null ? 'ended' : `failed: ${failure}`),
  });
  return told;
}

/** The candidate of the slot is ready, has lived through its canary time and is being checked. */
function reachCheck(cluster: FakeCluster, index: number): FakeWorker {
  const candidate = cluster.candidate(index);
  cluster.becomeReady(candidate);
  vi.advanceTimersByTime(CANARY_MS);
  expect(candidate.sent('check')).toHaveLength(1);
  return candidate;
}

/** The whole way of one slot. */
function succeed(cluster: FakeCluster, index: number): void {
  const old = cluster.current(index);
  const candidate = reachCheck(cluster, index);
  cluster.answerCheck(candidate, true);
  cluster.exit(old);
}

describe('a worker that is replaced by a reload', () => {
  it('serves on beside the new one until that is ready, old enough and well (R1)', () => {
    const cluster = start();
    const old = cluster.current(0);
    const told = replace(cluster, 0);
    const candidate = cluster.candidate(0);
    const undisturbed = () => {
      expect([cluster.slot(0).current, cluster.slot(0).release]).toEqual([
        old.handle,
        releaseOf(0),
      ]);
      expect(old.handle.state).toBe('ready');
      expect(told).toEqual(['started']);
    };

    undisturbed();
    cluster.becomeReady(candidate);
    undisturbed();
    vi.advanceTimersByTime(CANARY_MS - 1);
    expect(candidate.sent('check')).toEqual([]);
    undisturbed();
    vi.advanceTimersByTime(1);
    expect(candidate.sent('check')).toHaveLength(1);
    undisturbed();

    cluster.answerCheck(candidate, true);
    expect(cluster.slot(0)).toMatchObject({ candidate: undefined, release: releaseOf(1) });
    expect(cluster.slot(0).current).toBe(candidate.handle);
    expect(old.sent('drain')).toMatchObject([{ cause: 'reload' }]);
    expect(told).toEqual(['started', 'took over']);
  });

  it('is waited for: the replacement is over when its process is gone', () => {
    const cluster = start();
    const old = cluster.current(0);
    const told = replace(cluster, 0);
    cluster.answerCheck(reachCheck(cluster, 0), true);
    expect(told).not.toContain('ended');
    expect(cluster.picture).toContain('0: gen=0 draining');
    expect(cluster.exit(old)).toBe(false);
    expect(told).toEqual(['started', 'took over', 'ended']);
  });

  it('is told after the new one has taken its place, not before', () => {
    const cluster = start();
    const old = cluster.current(0);
    let drainsWhenTakenOver: number | undefined;
    cluster.succession.request({
      slot: cluster.slot(0),
      cause: 'reload',
      release: releaseOf(1),
      tookOver: () => (drainsWhenTakenOver = old.sent('drain').length),
      ended: () => {},
    });
    cluster.answerCheck(reachCheck(cluster, 0), true);
    expect(drainsWhenTakenOver).toBe(0);
    expect(old.sent('drain')).toHaveLength(1);
  });

  it('is ended by a signal where it was itself still starting', () => {
    const cluster = new FakeCluster(1, {}, 'starting');
    const old = cluster.current(0);
    replace(cluster, 0);
    cluster.answerCheck(reachCheck(cluster, 0), true);
    expect(old.signals).toEqual(['SIGTERM']);
  });
});

describe.each(['recycle', 'memory'] as const)('a worker that is replaced by %s', (cause) => {
  it('drains as soon as the new one is ready: its code is the same and has nothing to prove', () => {
    const cluster = start();
    const old = cluster.current(0);
    const told = replace(cluster, 0, cause);
    const candidate = cluster.candidate(0);
    expect(old.sent('drain')).toEqual([]);
    cluster.becomeReady(candidate);
    expect(old.sent('drain')).toMatchObject([{ cause }]);
    expect(candidate.sent('check')).toEqual([]);
    cluster.exit(old);
    expect(told).toEqual(['started', 'took over', 'ended']);
  });

  it('leaves its failures to the next one', () => {
    const cluster = start();
    const failures = { ...NO_FAILURES, inARow: 2, shortLives: 3 };
    cluster.slot(0).failures = failures;
    replace(cluster, 0, cause);
    cluster.becomeReady(cluster.candidate(0));
    expect(cluster.slot(0).failures).toEqual(failures);
  });
});

describe('the past of a slot', () => {
  it('is forgotten with the other code that a reload brings, once that has proven itself', () => {
    const cluster = start();
    const failures = { ...NO_FAILURES, inARow: 6, shortLives: 6, degraded: true };
    cluster.slot(0).failures = failures;
    replace(cluster, 0);
    const candidate = reachCheck(cluster, 0);
    expect(cluster.slot(0).failures).toEqual(failures);
    cluster.answerCheck(candidate, true);
    expect(cluster.slot(0).failures).toEqual(NO_FAILURES);
  });
});

describe('one slot at a time', () => {
  it('is replaced: the next one has its turn when the old worker of the one before is gone (M3)', () => {
    const cluster = start(3);
    const told = [0, 1, 2].map((index) => replace(cluster, index));
    expect(told).toEqual([['started'], [], []]);
    for (const index of [0, 1, 2]) {
      expect(cluster.forked).toHaveLength(4 + index);
      const old = cluster.current(index);
      cluster.answerCheck(reachCheck(cluster, index), true);
      expect(cluster.forked).toHaveLength(4 + index);
      cluster.exit(old);
    }
    expect(told.map((each) => each.at(-1))).toEqual(['ended', 'ended', 'ended']);
    expect(cluster.picture).toEqual(['0: gen=1 ready', '1: gen=1 ready', '2: gen=1 ready']);
  });

  it('is replaced also where the one before fails', () => {
    const cluster = start();
    replace(cluster, 0, 'recycle');
    const next = replace(cluster, 1, 'memory');
    cluster.exit(cluster.candidate(0));
    expect(next).toEqual(['started']);
    cluster.becomeReady(cluster.candidate(1));
    expect(next).toEqual(['started', 'took over']);
  });

  it('is replaced also where one replacement asks for the next', () => {
    const cluster = start();
    const order: string[] = [];
    const request = (index: number, then: () => void) =>
      cluster.succession.request({
        slot: cluster.slot(index),
        cause: 'recycle',
        release: releaseOf(0),
        started: () => order.push(`started ${index}`),
        ended: () => {
          order.push(`ended ${index}`);
          then();
        },
      });
    request(0, () => request(0, () => {}));
    request(1, () => {});
    for (const index of [0, 1, 0]) {
      const old = cluster.current(index);
      cluster.becomeReady(cluster.candidate(index));
      cluster.exit(old);
    }
    expect(order).toEqual(['started 0', 'ended 0', 'started 1', 'ended 1', 'started 0', 'ended 0']);
  });

  it('is of concern while it waits, while the new one proves itself and while the old one drains', () => {
    const cluster = start();
    const concerned = () => [0, 1].map((index) => cluster.succession.concerns(cluster.slot(index)));
    expect(concerned()).toEqual([false, false]);
    replace(cluster, 0);
    replace(cluster, 1);
    expect(concerned()).toEqual([true, true]);
    const old = cluster.current(0);
    cluster.answerCheck(reachCheck(cluster, 0), true);
    expect(concerned()).toEqual([true, true]);
    cluster.exit(old);
    expect(concerned()).toEqual([false, true]);
    succeed(cluster, 1);
    expect(concerned()).toEqual([false, false]);
  });
});

describe('a candidate that fails', () => {
  const WAYS: readonly [string, string, (cluster: FakeCluster) => void][] = [
    [
      'at boot (R4)',
      'boot: exited with code 1',
      (cluster) => {
        expect(cluster.exit(cluster.candidate(0), 'boot: exited with code 1')).toBe(true);
      },
    ],
    [
      'within its canary time',
      'crash: exited with code 1',
      (cluster) => {
        const candidate = cluster.candidate(0);
        cluster.becomeReady(candidate);
        vi.advanceTimersByTime(CANARY_MS - 1);
        expect(cluster.exit(candidate, 'crash: exited with code 1')).toBe(true);
      },
    ],
    [
      'while its health is checked',
      'killed by SIGKILL',
      (cluster) => {
        expect(cluster.exit(reachCheck(cluster, 0), 'killed by SIGKILL')).toBe(true);
      },
    ],
    [
      'by its health check',
      'its health check failed: database: refused',
      (cluster) => {
        cluster.answerCheck(reachCheck(cluster, 0), false, 'database: refused');
      },
    ],
    [
      'by its health check, without saying why',
      'its health check failed: no reason given',
      (cluster) => {
        cluster.answerCheck(reachCheck(cluster, 0), false);
      },
    ],
    [
      'by a health check that does not end',
      'its health check took longer than 2000 ms',
      (cluster) => {
        const candidate = reachCheck(cluster, 0);
        vi.advanceTimersByTime(CHECK_TIMEOUT_MS - 1);
        expect(candidate.handle.state).toBe('ready');
        vi.advanceTimersByTime(1);
      },
    ],
    [
      'by leaving of its own accord',
      'it was told to leave',
      (cluster) => {
        const candidate = cluster.candidate(0);
        cluster.becomeReady(candidate);
        candidate.handle.enter('draining');
        cluster.slot(0).retire(candidate.handle);
        expect(cluster.succession.left(candidate.handle, 'it was told to leave')).toBe(true);
      },
    ],
  ];

  it.each(WAYS)('%s leaves the old worker in its place, and the reason', (_, reason, fail) => {
    const cluster = start();
    const old = cluster.current(0);
    const told = replace(cluster, 0);
    fail(cluster);
    expect(told).toEqual(['started', `failed: ${reason}`]);
    expect(cluster.slot(0)).toMatchObject({ candidate: undefined, release: releaseOf(0) });
    expect(cluster.slot(0).current).toBe(old.handle);
    expect(old.handle.state).toBe('ready');
    expect([...old.sent('drain'), ...old.signals, ...cluster.restarted]).toEqual([]);
    expect(cluster.succession.concerns(cluster.slot(0))).toBe(false);
  });

  it.each(WAYS)('%s has no second chance: nothing that comes later changes that', (_, __, fail) => {
    const cluster = start();
    const told = replace(cluster, 0);
    const candidate = cluster.candidate(0);
    fail(cluster);
    const before = [...told];
    vi.advanceTimersByTime(60_000);
    for (const id of [1, 2]) {
      cluster.succession.checked(candidate.handle, id, { healthy: true, detail: null });
    }
    cluster.exit(candidate);
    expect(told).toEqual(before);
    expect(cluster.current(0).handle.identity.generation).toBe(0);
  });

  it.each([
    ['its health check failed', false],
    ['its health check took too long', true],
  ])('is drained where it still runs: %s', (_, silent) => {
    const cluster = start();
    replace(cluster, 0);
    const candidate = reachCheck(cluster, 0);
    if (silent) vi.advanceTimersByTime(CHECK_TIMEOUT_MS);
    else cluster.answerCheck(candidate, false, 'no');
    expect(candidate.sent('drain')).toMatchObject([{ cause: 'reload' }]);
    expect(cluster.slot(0).retiring).toContain(candidate.handle);
    expect(cluster.events('worker-draining')).toEqual([
      { worker: candidate.handle.identity, cause: 'reload' },
    ]);
  });

  it('leaves a slot that has lost its old worker meanwhile to be restarted, once', () => {
    const cluster = start();
    const told = replace(cluster, 0);
    cluster.exit(cluster.current(0));
    expect(cluster.restarted).toEqual([]);
    cluster.exit(cluster.candidate(0), 'boot');
    expect(cluster.restarted).toEqual([cluster.slot(0)]);
    expect(told).toEqual(['started', 'failed: boot']);
  });
});

describe('the verdict of a health check', () => {
  it('counts only for the question that was asked, of the worker that was asked', () => {
    const cluster = start();
    const told = replace(cluster, 0);
    const candidate = reachCheck(cluster, 0);
    const { id } = candidate.sent('check')[0]!;
    const well = { healthy: true, detail: null };
    cluster.succession.checked(candidate.handle, id + 1, well);
    cluster.succession.checked(candidate.handle, id - 1, well);
    cluster.succession.checked(cluster.current(0).handle, id, well);
    cluster.succession.checked(cluster.current(1).handle, id, { healthy: false, detail: 'no' });
    expect(told).toEqual(['started']);
    cluster.succession.checked(candidate.handle, id, well);
    expect(told).toEqual(['started', 'took over']);
  });

  it('is not asked of a worker that is on its way out', () => {
    const cluster = start();
    replace(cluster, 0);
    const candidate = cluster.candidate(0);
    cluster.becomeReady(candidate);
    candidate.handle.enter('draining');
    vi.advanceTimersByTime(CANARY_MS);
    expect(candidate.sent('check')).toEqual([]);
  });

  it('counts once', () => {
    const cluster = start();
    const told = replace(cluster, 0);
    const candidate = reachCheck(cluster, 0);
    cluster.answerCheck(candidate, true);
    cluster.answerCheck(candidate, false, 'changed its mind');
    vi.advanceTimersByTime(CHECK_TIMEOUT_MS);
    expect(told).toEqual(['started', 'took over']);
    expect(cluster.current(0)).toBe(candidate);
  });

  it('does not count of a worker that is on its way out', () => {
    const cluster = start();
    const told = replace(cluster, 0);
    const candidate = reachCheck(cluster, 0);
    candidate.handle.enter('draining');
    cluster.answerCheck(candidate, true);
    expect(told).toEqual(['started']);
    cluster.exit(candidate, 'it left');
    expect(told).toEqual(['started', 'failed: it left']);
  });

  it('does not count before the question: a worker that volunteers is not trusted', () => {
    const cluster = start();
    const told = replace(cluster, 0);
    const candidate = cluster.candidate(0);
    cluster.becomeReady(candidate);
    cluster.succession.checked(candidate.handle, 1, { healthy: true, detail: null });
    expect(told).toEqual(['started']);
  });
});

describe('an old worker that is gone before the new one is ready', () => {
  it('is succeeded all the same, and nobody is waited for', () => {
    const cluster = start();
    const told = replace(cluster, 0);
    expect(cluster.exit(cluster.current(0))).toBe(false);
    expect(told).toEqual(['started']);
    const candidate = reachCheck(cluster, 0);
    cluster.answerCheck(candidate, true);
    expect(told).toEqual(['started', 'took over', 'ended']);
    expect(cluster.current(0)).toBe(candidate);
    expect(cluster.restarted).toEqual([]);
  });

  it('calls off the restart that was due: there would be two', () => {
    const cluster = start();
    const startDue = vi.fn();
    cluster.exit(cluster.current(0));
    cluster.slot(0).scheduleStart(100, startDue);
    replace(cluster, 0);
    vi.advanceTimersByTime(1_000);
    expect(startDue).not.toHaveBeenCalled();
  });
});

describe('an old worker that drains', () => {
  it('is waited for until its process has ended, whatever else is said of it', () => {
    const cluster = start();
    const old = cluster.current(0);
    const told = replace(cluster, 0);
    cluster.answerCheck(reachCheck(cluster, 0), true);
    expect(cluster.succession.left(old.handle, 'it drains')).toBe(false);
    expect(told).not.toContain('ended');
  });
});

describe('an old worker that itself waits for the end of the whole', () => {
  it('is not waited for: nobody would ever be done', () => {
    const cluster = start();
    const old = cluster.current(0);
    const ended = vi.fn();
    cluster.succession.request({
      slot: cluster.slot(0),
      cause: 'reload',
      release: releaseOf(1),
      lingers: () => true,
      ended,
    });
    const next = replace(cluster, 1);
    cluster.answerCheck(reachCheck(cluster, 0), true);
    expect(old.sent('drain')).toHaveLength(1);
    expect(ended.mock.calls).toEqual([[null]]);
    expect(next).toEqual(['started']);
    cluster.exit(old);
    expect(ended).toHaveBeenCalledOnce();
    expect(next).toEqual(['started']);
  });
});

describe('a slot that is not wanted any more', () => {
  /** As the supervisor takes `scale`. */
  function scaleDown(cluster: FakeCluster, workers: number): void {
    const dismissed = cluster.table.slots.slice(workers);
    cluster.table.resize(workers);
    for (const slot of dismissed) {
      for (const worker of slot.workers) {
        slot.retire(worker);
        worker.enter('draining');
        cluster.succession.left(worker, 'its slot was scaled away');
      }
    }
  }

  it('is passed over when its turn comes', () => {
    const cluster = start(3);
    replace(cluster, 0, 'recycle');
    const unwanted = replace(cluster, 2, 'recycle');
    const wanted = replace(cluster, 1, 'recycle');
    scaleDown(cluster, 2);
    const old = cluster.current(0);
    cluster.becomeReady(cluster.candidate(0));
    cluster.exit(old);
    expect(unwanted).toEqual(['ended']);
    expect(wanted).toEqual(['started']);
  });

  it('ends its replacement without a failure: nobody is to be told of one', () => {
    const cluster = start();
    const told = replace(cluster, 1);
    const candidate = cluster.candidate(1);
    scaleDown(cluster, 1);
    expect(told).toEqual(['started', 'ended']);
    cluster.exit(candidate, 'it left');
    expect(told).toEqual(['started', 'ended']);
    expect(cluster.restarted).toEqual([]);
    expect(cluster.slot(0).ready).toBe(true);
  });

  it('does not come back with a candidate that is well but has been told to leave', () => {
    const cluster = start();
    const told = replace(cluster, 1);
    const candidate = reachCheck(cluster, 1);
    scaleDown(cluster, 1);
    cluster.answerCheck(candidate, true);
    expect(cluster.table.slotOf(candidate.handle).current).toBeUndefined();
    expect(told).toEqual(['started', 'ended']);
  });

  it('keeps the worker that it was given when it was wanted again', () => {
    const cluster = start();
    replace(cluster, 1);
    const candidate = reachCheck(cluster, 1);
    scaleDown(cluster, 1);
    cluster.table.resize(2);
    const next = cluster.fork(cluster.slot(1), releaseOf(0));
    cluster.slot(1).current = next.handle;
    cluster.answerCheck(candidate, true);
    cluster.exit(candidate, 'it left');
    expect(cluster.current(1)).toBe(next);
    expect([next.handle.state, ...next.signals]).toEqual(['starting']);
  });
});

describe('a cluster that shuts down', () => {
  it('replaces nobody any more, and says so to whoever reloads', () => {
    const cluster = start(3);
    const active = replace(cluster, 0);
    const waiting = replace(cluster, 1);
    const candidate = cluster.candidate(0);
    cluster.succession.cancel('the end');
    expect(active).toEqual(['started', 'failed: the end']);
    expect(waiting).toEqual(['failed: the end']);
    cluster.becomeReady(candidate);
    vi.advanceTimersByTime(CANARY_MS);
    expect(candidate.sent('check')).toEqual([]);
    expect(cluster.exit(candidate)).toBe(false);
    expect([active.length, waiting.length, cluster.restarted.length]).toEqual([2, 1, 0]);
    expect(cluster.forked).toHaveLength(4);
  });

  it('says so also to a reload whose last old worker still drains', () => {
    const cluster = start();
    const old = cluster.current(0);
    const told = replace(cluster, 0);
    cluster.answerCheck(reachCheck(cluster, 0), true);
    cluster.succession.cancel('the end');
    cluster.exit(old);
    expect(told).toEqual(['started', 'took over', 'failed: the end']);
  });

  it('has nothing to say of what nobody waits for', () => {
    const cluster = start();
    const told = [replace(cluster, 0, 'memory'), replace(cluster, 1, 'recycle')];
    cluster.succession.cancel('the end');
    expect(told).toEqual([['started'], []]);
    expect(cluster.succession.concerns(cluster.slot(1))).toBe(false);
  });
});
