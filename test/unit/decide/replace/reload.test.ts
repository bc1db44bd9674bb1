import { beforeEach, describe, expect, it, vi } from 'vitest';
import { CANARY_MS } from '../../../../src/decide/replace/replacement.js';
import { FakeCluster } from '../../support/fake-cluster.js';

beforeEach(() => vi.useFakeTimers());

const ABORTED = { completed: 0, aborted: 1, reverted: 0 };
const COMPLETED = { outcome: 'completed', generation: 1, reason: null };

/** The fake program is at the same path before and after. */
const OVERWRITTEN =
  '; the previous release, gen=0, cannot be restored: the new release has the same path';

const start = (workers = 2) =>
  new FakeCluster(workers, { hangTimeoutMs: false, memory: { softLimitBytes: 1e9 } });

it('a reload is told of and counted, with its reason and how long it took', () => {
  const cluster = start();
  cluster.reload();
  cluster.replaceSlots(2);
  expect(cluster.events('reload-started')).toEqual([{ generation: 1, reason: 'test' }]);
  expect(cluster.events('reload-ended')).toEqual([{ ...COMPLETED, durationMs: 2 * CANARY_MS }]);
  const each = ['worker-ready', 'worker-draining', 'worker-stopped'];
  expect(cluster.story.slice(2)).toEqual(['reload-started', ...each, ...each, 'reload-ended']);
  expect(cluster.supervisor.snapshot()).toMatchObject({
    generation: 1,
    reloads: { completed: 1, aborted: 0, reverted: 0 },
  });
});

it.each([
  ['the first', 0, ['0: gen=0 ready', '1: gen=0 ready', '2: gen=0 ready']],
  ['the second', 1, ['0: gen=1 ready', '1: gen=0 ready', '2: gen=0 ready']],
  ['the last', 2, ['0: gen=1 ready', '1: gen=1 ready', '2: gen=0 ready']],
])(
  'a reload whose new worker fails is aborted at %s: whatever has not been replaced serves on',
  async (_, after, picture) => {
    const cluster = start(3);
    const told = cluster.reload();
    cluster.replaceSlots(after);
    const error = { name: 'Error', message: 'no such module' };
    cluster.newest(after).say({ type: 'boot-failed', error });
    cluster.newest(after).exit();
    await cluster.settled();
    expect(told).toEqual([
      {
        outcome: 'aborted',
        generation: 1,
        reason: `worker=${after} gen=1: exited with code 1: Error: no such module${after > 0 ? OVERWRITTEN : ''}`,
      },
    ]);
    expect(cluster.picture.toSorted()).toEqual(picture);
    expect(cluster.forked).toHaveLength(3 + after + 1);
    expect(cluster.events('reload-ended')).toEqual([{ ...told[0], durationMs: after * CANARY_MS }]);
    // The cluster keeps its generation.
    expect(cluster.supervisor.snapshot()).toMatchObject({ generation: 0, reloads: ABORTED });
    cluster.scale(4);
    expect(cluster.forks.at(-1)).toMatchObject({ slot: 3, generation: 0 });
  },
);

it('a reload of a program that is not there is aborted before anything is forked, and says what is missing', async () => {
  const cluster = start();
  const { program } = cluster;
  const reason = 'the working directory /app/current is not there';
  cluster.program = new Error(reason);
  const told = cluster.reload();
  await cluster.settled();
  expect(told).toEqual([{ outcome: 'aborted', generation: 1, reason }]);
  expect(cluster.forked).toHaveLength(2);
  expect(cluster.events('reload-started')).toHaveLength(1);
  expect(cluster.events('reload-ended')).toMatchObject([{ reason }]);
  expect(cluster.supervisor.snapshot().reloads).toEqual(ABORTED);

  cluster.program = program;
  const next = cluster.reload();
  cluster.replaceSlots(2);
  await cluster.settled();
  expect(next).toEqual([{ ...COMPLETED, generation: 2 }]);
});

it.each([0, 1, 2])(
  'a worker that reloads its own cluster is replaced last, and told before it drains: slot %d',
  (slot) => {
    const cluster = start(3);
    const asker = cluster.current(slot);
    asker.say({ type: 'reload-request', id: 7 });
    cluster.replaceSlots(2);
    cluster.reachCheck(slot).answerCheck(true);
    // Once it has drained it could not hear of it.
    expect(asker.inbox.filter((type) => type === 'answer' || type === 'drain')).toEqual([
      'answer',
      'drain',
    ]);
    expect(asker.sent('answer')).toMatchObject([{ id: 7, result: COMPLETED }]);
  },
);

describe('a reload of more than four workers', () => {
  /** The slots for which the reload has forked a worker. */
  const begun = ({ forks }: FakeCluster) =>
    forks.filter(({ generation }) => generation === 1).map(({ slot }) => slot);

  it('replaces a quarter of them at once, and boots one at a time', () => {
    const cluster = start(5);
    const old = cluster.current(0);
    cluster.reload();
    vi.advanceTimersByTime(5_000);
    expect(begun(cluster)).toEqual([0]);
    cluster.newest(0).becomeReady();
    expect(begun(cluster)).toEqual([0, 1]);
    cluster.newest(1).becomeReady();
    expect(begun(cluster)).toEqual([0, 1]);
    vi.advanceTimersByTime(CANARY_MS);
    cluster.newest(0).answerCheck(true);
    expect([old.handle.state, begun(cluster)]).toEqual(['draining', [0, 1]]);
    old.exit({ code: 0 });
    expect(begun(cluster)).toEqual([0, 1, 2]);
  });

  it('is aborted as a whole if one of them fails', async () => {
    const cluster = start(9);
    const told = cluster.reload();
    for (const slot of [0, 1]) cluster.newest(slot).becomeReady();
    cluster.newest(2).exit({ code: 1 });
    await cluster.settled();
    expect(told).toMatchObject([
      { outcome: 'aborted', reason: 'worker=2 gen=1: exited with code 1' },
    ]);
    expect(cluster.picture.slice(9)).toEqual(['0: gen=1 draining', '1: gen=1 draining']);
    expect(cluster.workers('ready')).toHaveLength(9);
  });

  it('replaces the worker that asked for it after all others', () => {
    const cluster = start(5);
    const asker = cluster.current(0);
    asker.say({ type: 'reload-request', id: 7 });
    for (const slot of [1, 2, 3, 4]) {
      const old = cluster.serving(slot);
      cluster.reachCheck(slot).answerCheck(true);
      expect(begun(cluster)).not.toContain(0);
      old.exit({ code: 0 });
    }
    cluster.reachCheck(0).answerCheck(true);
    expect(asker.sent('answer')).toMatchObject([{ id: 7, result: COMPLETED }]);
  });
});

it('a worker that joins a reload under way is replaced last, and told before it drains', () => {
  const cluster = start(3);
  cluster.reload();
  vi.advanceTimersByTime(1_000);
  const asker = cluster.current(1);
  asker.say({ type: 'reload-request', id: 7 });
  cluster.replaceSlots(2);
  expect(cluster.forks.at(-1)).toMatchObject({ slot: 1, generation: 1 });
  cluster.reachCheck(1).answerCheck(true);
  expect(asker.inbox.filter((type) => type === 'answer' || type === 'drain')).toEqual([
    'answer',
    'drain',
  ]);
});

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
    expect(cluster.picture.toSorted()).toEqual([0, 1, 2, 3].map((slot) => `${slot}: gen=0 ready`));
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
    expect(cluster.picture).toContain('1: gen=1 ready');
    cluster.serving(1).exit({ code: 1 });
    vi.advanceTimersByTime(200);
    expect(cluster.forks.at(-1)).toMatchObject({ slot: 1, generation: 0 });
  });
});
