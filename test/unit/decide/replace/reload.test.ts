import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { CANARY_MS } from '../../../../src/decide/replace/replacement.js';
import { FakeCluster } from '../../support/fake-cluster.js';
import type { FakeWorker } from '../../support/fake-worker.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const ABORTED = { completed: 0, aborted: 1, reverted: 0 };
const COMPLETED = { outcome: 'completed', generation: 1, reason: null };

/** The fake program is at the same path before and after. */
const OVERWRITTEN = '; the previous release, gen=0, cannot be restored: it has the same path';

const start = (workers = 2) =>
  new FakeCluster(workers, { hangTimeoutMs: false, memory: { softLimitBytes: 1e9 } });

/** The worker of a slot asks for a reload. */
function ask(cluster: FakeCluster, slot: number): FakeWorker {
  const worker = cluster.current(slot);
  worker.say({ type: 'reload-request', id: 7 });
  return worker;
}

/** The `answer` and `drain` messages that a worker was sent, in order. */
const decisionsOf = ({ inbox }: FakeWorker) =>
  inbox.filter((type) => type === 'answer' || type === 'drain');

describe('a reload', () => {
  it.each([1, 2, 4])(
    'replaces every worker of %d, is over when the last old one is gone, and all the time as many are ready',
    async (workers) => {
      const cluster = start(workers);
      const ready = () => cluster.supervisor.snapshot().ready;
      const told = cluster.reload();
      for (let slot = 0; slot < workers; slot += 1) {
        expect(ready()).toBe(workers);
        const old = cluster.takeOver();
        expect(old.handle.identity.slot).toBe(slot);
        await cluster.settled();
        expect([ready(), told, cluster.events('reload-ended')]).toEqual([workers, [], []]);
        old.exit({ code: 0 });
      }
      await cluster.settled();
      expect(told).toEqual([COMPLETED]);
      expect(cluster.picture).toEqual(
        Array.from({ length: workers }, (_, slot) => `${slot}: gen=1 ready`),
      );
      expect(cluster.forked).toHaveLength(2 * workers);
    },
  );

  it('is told of and counted, with its reason and how long it took', () => {
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

  it('changes what a slot that is added later runs, or comes back, once it is completed', () => {
    const cluster = start(3);
    cluster.scale(2);
    cluster.newest(2).exit({ code: 0 });
    cluster.reload();
    cluster.replaceSlots(1);
    expect(cluster.supervisor.snapshot().generation).toBe(0);
    cluster.replaceSlots(1);
    cluster.scale(4);
    expect(cluster.forks.slice(-2)).toMatchObject([
      { slot: 2, generation: 1 },
      { slot: 3, generation: 1 },
    ]);
  });
});

describe('a reload whose new worker fails', () => {
  it.each([
    ['the first', 0, ['0: gen=0 ready', '1: gen=0 ready', '2: gen=0 ready']],
    ['the second', 1, ['0: gen=1 ready', '1: gen=0 ready', '2: gen=0 ready']],
    ['the last', 2, ['0: gen=1 ready', '1: gen=1 ready', '2: gen=0 ready']],
  ])('is aborted at %s: whatever has not been replaced serves on', async (_, after, picture) => {
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
  });
});

describe('a reload of a program that is not there', () => {
  it('is aborted before anything is forked, and says what is missing', async () => {
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
});

describe('several reloads at once', () => {
  it('are one, and everybody is told how it ended', async () => {
    const cluster = start();
    const told = [cluster.reload(), cluster.reload()];
    cluster.replaceSlots(1);
    told.push(cluster.reload());
    cluster.replaceSlots(1);
    await cluster.settled();
    expect(told).toEqual([[COMPLETED], [COMPLETED], [COMPLETED]]);
    expect(cluster.events('reload-started')).toHaveLength(1);
    expect(cluster.events('reload-ended')).toHaveLength(1);
    expect(cluster.supervisor.snapshot().reloads).toMatchObject({ completed: 1, aborted: 0 });
    expect(cluster.forked).toHaveLength(4);
  });

  it('are answered in the order of the requests', async () => {
    const cluster = start();
    const answered: number[] = [];
    const asker = cluster.current(1);
    for (const id of [1, 2, 3]) {
      void cluster.supervisor.reload('test').then(() => answered.push(id));
      asker.say({ type: 'reload-request', id });
    }
    cluster.replaceSlots(2);
    await cluster.settled();
    expect(answered).toEqual([1, 2, 3]);
    expect(asker.sent('answer').map(({ id }) => id)).toEqual([1, 2, 3]);
  });
});

describe('a worker that reloads its own cluster', () => {
  it.each([0, 1, 2])(
    'is the last to be replaced, and is told before it drains: slot %d',
    (slot) => {
      const cluster = start(3);
      const asker = ask(cluster, slot);
      const others = [0, 1, 2].filter((each) => each !== slot);
      expect(cluster.replaceSlots(2)).toEqual(others);
      expect(decisionsOf(asker)).toEqual([]);
      expect(cluster.takeOver()).toBe(asker);
      // Once it has drained it could not hear of it.
      expect(decisionsOf(asker)).toEqual(['answer', 'drain']);
      expect(asker.sent('answer')).toMatchObject([{ id: 7, result: COMPLETED }]);
    },
  );
});
