import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { CANARY_MS } from '../../../../src/decide/replace/replacement.js';
import { FakeCluster } from '../../support/fake-cluster.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const ABORTED = { completed: 0, aborted: 1, reverted: 0 };
const COMPLETED = { outcome: 'completed', generation: 1, reason: null };

/** The fake program is at the same path before and after. */
const OVERWRITTEN = '; the previous release, gen=0, cannot be restored: it has the same path';

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
