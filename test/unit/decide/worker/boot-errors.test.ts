import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { FakeCluster } from '../../support/fake-cluster.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

/** The last slot still starts: until it has, the cluster does not give up. */
function start(workers = 3) {
  const options = { hangTimeoutMs: false, readyTimeoutMs: 900_000 } as const;
  const cluster = new FakeCluster(workers, options, 'starting');
  /** The newest worker of a slot fails while it starts; what is told of its error. */
  const fail = (slot: number, message: string | null, name = 'Error') => {
    const worker = cluster.newest(slot);
    const error = { name, message: message ?? '', stack: `${name}: ${message}\n at` };
    if (message !== null) worker.say({ type: 'boot-failed', error });
    worker.exit();
    return cluster.events('worker-died').at(-1)!.error;
  };
  return {
    cluster,
    fail,
    /** For each slot, whether its newest worker prints its error. */
    prints: () =>
      Array.from(
        { length: workers },
        (_, slot) => cluster.forks.findLast((fork) => fork.slot === slot)!.printsBootError,
      ),
    /** They all fail, and the next ones start. */
    failAll: (messages: Record<number, string | null>, name?: string) => {
      for (const [slot, message] of Object.entries(messages)) fail(Number(slot), message, name);
      vi.advanceTimersByTime(15_000);
    },
  };
}

describe('an error that keeps workers from coming up', () => {
  it('is printed by one of those that start together, and by none after it', () => {
    const { prints, failAll } = start();
    expect(prints()).toEqual([true, false, false]);
    failAll({ 1: 'no database' });
    expect(prints()).toEqual([true, false, false]);
    failAll({ 0: 'no database' });
    expect(prints()).toEqual([false, false, false]);
    failAll({ 0: 'no database', 1: 'no database' });
    expect(prints()).toEqual([false, false, false]);
  });

  it('is reported with its stack once, and in short from then on', () => {
    const { cluster, fail } = start();
    expect(fail(0, 'no database')).toHaveProperty('stack');
    expect(fail(1, 'no database')).toEqual({
      name: 'Error',
      message: 'no database',
      repeated: true,
    });
    vi.advanceTimersByTime(100);
    expect(fail(0, 'no queue')).toHaveProperty('stack');
    expect(cluster.story).not.toContain('failed');
  });

  it('is news again after a hundred others: a slot that never comes up fills no memory', () => {
    const { cluster, fail } = start(2);
    cluster.newest(1).becomeReady();
    for (let n = 0; n <= 100; n += 1) {
      fail(0, `request ${n} failed`);
      vi.advanceTimersByTime(15_000);
    }
    expect(fail(0, 'request 100 failed')).not.toHaveProperty('stack');
    vi.advanceTimersByTime(15_000);
    expect(fail(0, 'request 0 failed')).toHaveProperty('stack');
  });

  it('is printed by the next worker where the one that was to print it ended without a word', () => {
    const { prints, failAll } = start();
    failAll({ 0: null });
    expect(prints()).toEqual([true, false, false]);
  });

  it('is news once a worker has come up, also one that was to leave, and in each reload', () => {
    const { cluster, prints, fail } = start();
    fail(0, 'no database');
    cluster.newest(2).becomeReady();
    vi.advanceTimersByTime(100);
    expect(prints()[0]).toBe(true);
    expect(fail(0, 'no database')).toHaveProperty('stack');

    cluster.newest(1).say({ type: 'leaving' });
    cluster.newest(1).becomeReady();
    vi.advanceTimersByTime(200);
    expect(fail(0, 'no database')).toHaveProperty('stack');

    for (const reason of ['first', 'second']) {
      void cluster.supervisor.reload(reason);
      expect(cluster.forks.at(-1)).toMatchObject({ slot: 0, printsBootError: true });
      expect(fail(0, 'no database')).toHaveProperty('stack');
    }
  });
});
