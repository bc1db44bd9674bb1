import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { CANARY_MS } from '../../../../src/decide/replace/replacement.js';
import { FakeCluster } from '../../support/fake-cluster.js';
import type { FakeWorker } from '../../support/fake-worker.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const ABORTED = { completed: 0, aborted: 1, reverted: 0 };
const COMPLETED = { outcome: 'completed', generation: 1, reason: null };

/** The fake program is at the same path before and after. */
const OVERWRITTEN = '; the release before, gen=0, cannot come back: it has the same path';

const start = (workers = 2) =>
  new FakeCluster(workers, { hangTimeoutMs: false, memory: { softLimitBytes: 1e9 } });

/** The worker of a slot asks for a reload. */
function ask(cluster: FakeCluster, slot: number): FakeWorker {
  const worker = cluster.current(slot);
  worker.say({ type: 'reload-request', id: 7 });
  return worker;
}

const toldTo = (worker: FakeWorker) => worker.sent('answer').map(({ result }) => result);

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

  it('replaces also a worker that was added while it was under way', async () => {
    const cluster = start(1);
    const told = cluster.reload();
    cluster.scale(2);
    cluster.newest(1).becomeReady();
    expect(cluster.picture).toContain('1: gen=0 ready');
    cluster.takeOver(0).exit({ code: 0 });
    cluster.replaceSlots(1);
    await cluster.settled();
    expect(told).toEqual([COMPLETED]);
    expect(cluster.picture).toEqual(['0: gen=1 ready', '1: gen=1 ready']);
  });

  it('is completed without a slot that was taken away while it was under way', async () => {
    const cluster = start(2);
    const told = cluster.reload();
    cluster.scale(1);
    cluster.replaceSlots(1);
    await cluster.settled();
    expect(told).toEqual([COMPLETED]);
  });

  it('waits for a replacement that is under way for another reason', async () => {
    const cluster = start();
    const old = cluster.current(1);
    cluster.outgrow(1);
    const told = cluster.reload();
    expect(cluster.forks.slice(2)).toMatchObject([{ slot: 1, generation: 0 }]);
    cluster.newest(1).becomeReady();
    old.exit({ code: 0 });
    expect(cluster.replaceSlots(2)).toEqual([0, 1]);
    await cluster.settled();
    expect(told).toEqual([COMPLETED]);
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

  it('leaves the next one free to try, with a number of its own', async () => {
    const cluster = start();
    cluster.reload();
    cluster.replaceSlots(1);
    cluster.newest(1).exit();
    const told = cluster.reload();
    cluster.replaceSlots(2);
    await cluster.settled();
    expect(told).toEqual([{ ...COMPLETED, generation: 2 }]);
    expect(cluster.picture).toEqual(['0: gen=2 ready', '1: gen=2 ready']);
    expect(cluster.events('reload-started').map(({ generation }) => generation)).toEqual([1, 2]);
    expect(cluster.supervisor.snapshot().reloads).toEqual({ ...ABORTED, completed: 1 });
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

  it('are aborted as one, and a worker that asked stays', async () => {
    const cluster = start();
    const told = cluster.reload();
    const asker = ask(cluster, 1);
    cluster.newest(0).exit();
    await cluster.settled();
    const reason = 'worker=0 gen=1: exited with code 1';
    expect(told).toEqual([{ outcome: 'aborted', generation: 1, reason }]);
    expect(toldTo(asker)).toEqual(told);
    expect([cluster.current(1), decisionsOf(asker)]).toEqual([asker, ['answer']]);
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

  it('is told once, and who stays is told when it has gone', async () => {
    const cluster = start(1);
    const leaving = ask(cluster, 0);
    const staying = cluster.reload();
    cluster.takeOver();
    await cluster.settled();
    expect([toldTo(leaving), staying]).toEqual([[COMPLETED], []]);
    leaving.exit({ code: 0 });
    await cluster.settled();
    expect([toldTo(leaving), staying]).toEqual([[COMPLETED], [COMPLETED]]);
  });

  it('is told also where it is the second to ask: it is not replaced before it can hear', () => {
    const cluster = start(3);
    cluster.reload();
    const asker = ask(cluster, 1);
    expect(cluster.replaceSlots(3)).toEqual([0, 2, 1]);
    expect(decisionsOf(asker)).toEqual(['answer', 'drain']);
  });

  it('is one of several: the first of them drains, still hears, and nobody waits for it', () => {
    const cluster = start(3);
    const [first, second] = [ask(cluster, 0), ask(cluster, 2)];
    expect(cluster.replaceSlots(1)).toEqual([1]);
    expect(cluster.takeOver()).toBe(first);
    expect([first, second].map(decisionsOf)).toEqual([['drain'], []]);
    expect(cluster.takeOver()).toBe(second);
    expect([first, second].map(decisionsOf)).toEqual([
      ['drain', 'answer'],
      ['answer', 'drain'],
    ]);
    for (const worker of [first, second]) worker.exit({ code: 0 });
    expect(cluster.events('reload-ended')).toHaveLength(1);
    expect(cluster.picture.toSorted()).toEqual([
      '0: gen=1 ready',
      '1: gen=1 ready',
      '2: gen=1 ready',
    ]);
  });

  it.each<[when: string, prepare: (cluster: FakeCluster) => FakeWorker, left: number]>([
    [
      'is being replaced already',
      (cluster) => {
        cluster.reload();
        const asker = ask(cluster, 0);
        expect(cluster.takeOver()).toBe(asker);
        expect(cluster.forks.at(-1)).toMatchObject({ slot: 1 });
        return asker;
      },
      2,
    ],
    [
      'is recycled',
      (cluster) => {
        cluster.outgrow(0);
        const asker = ask(cluster, 0);
        cluster.newest(0).becomeReady();
        return asker;
      },
      3,
    ],
    [
      'drains already',
      (cluster) => {
        cluster.reload();
        const asker = cluster.takeOver();
        asker.say({ type: 'reload-request', id: 7 });
        return asker;
      },
      2,
    ],
  ])('may ask while it %s: it drains, still hears, and nobody waits for it', (_, prepare, left) => {
    const cluster = start(3);
    const asker = prepare(cluster);
    expect(decisionsOf(asker)).toEqual(['drain']);
    cluster.replaceSlots(left);
    expect(toldTo(asker)).toEqual([COMPLETED]);
    asker.exit({ code: 0 });
    expect(cluster.events('reload-ended')).toHaveLength(1);
  });

  it('is told also where its own worker is gone by then', async () => {
    const cluster = start(2);
    const asker = ask(cluster, 0);
    const told = cluster.reload();
    expect(cluster.replaceSlots(1)).toEqual([1]);
    asker.exit();
    cluster.takeOver(0);
    await cluster.settled();
    expect(told).toEqual([COMPLETED]);
    expect([toldTo(asker), cluster.events('warning')]).toEqual([[], []]);
  });
});
