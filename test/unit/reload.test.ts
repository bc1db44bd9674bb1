import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Program } from '../../src/primary/release.js';
import { Reload } from '../../src/primary/reload.js';
import type { ReloadResult } from '../../src/snapshot/index.js';
import { FakeCluster, releaseOf } from './fake-cluster.js';
import type { FakeWorker } from './fake-worker.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const CANARY_MS = 1_000;

class FakeProgram {
  /** Thrown by `resolve`. */
  missing: string | undefined;

  resolve(generation: number) {
    if (this.missing !== undefined) throw new Error(this.missing);
    return releaseOf(generation);
  }
}

function start(workers = 2) {
  const cluster = new FakeCluster(workers, { reload: { canaryMs: CANARY_MS } });
  const program = new FakeProgram();
  const { table, succession, emit } = cluster;
  const reload = new Reload(table, succession, program as unknown as Program, emit);
  return {
    cluster,
    program,
    reload,
    /** Asks by a signal, or from the worker of slot `asker`; keeps what is told. */
    ask: (asker?: number): ReloadResult[] => {
      const told: ReloadResult[] = [];
      const waiting = {
        leaving: asker !== undefined,
        done: (result: ReloadResult) => void told.push(result),
      };
      reload.run('test', waiting, asker === undefined ? undefined : cluster.slot(asker));
      return told;
    },
  };
}

/** The slot that is being replaced. */
function activeSlot(cluster: FakeCluster): number {
  const slot = cluster.table.slots.find(({ candidate }) => candidate !== undefined);
  if (slot === undefined) throw new Error('no slot has a candidate');
  return slot.index;
}

/** The candidate proves itself and takes over; returns the worker before it, which drains. */
function takeOver(cluster: FakeCluster): FakeWorker {
  const index = activeSlot(cluster);
  const [old, candidate] = [cluster.current(index), cluster.candidate(index)];
  cluster.becomeReady(candidate);
  vi.advanceTimersByTime(CANARY_MS);
  cluster.answerCheck(candidate, true);
  return old;
}

/** Replaces `slots` workers; in which order. */
function advance(cluster: FakeCluster, slots: number): number[] {
  return Array.from({ length: slots }, () => {
    const index = activeSlot(cluster);
    cluster.exit(takeOver(cluster));
    return index;
  });
}

const COMPLETED = { outcome: 'completed', generation: 1, reason: null };

describe('a reload', () => {
  it.each([1, 2, 4])('replaces every worker of %d, one after the other (R1, R3)', (workers) => {
    const { cluster, ask } = start(workers);
    const told = ask();
    expect(advance(cluster, workers)).toEqual([...Array(workers).keys()]);
    expect(told).toEqual([COMPLETED]);
    expect(cluster.picture).toEqual(
      [...Array(workers).keys()].map((slot) => `${slot}: gen=1 ready`),
    );
    expect(cluster.forked).toHaveLength(2 * workers);
  });

  it('never has fewer workers ready than there should be', () => {
    const { cluster, ask } = start(3);
    const ready = () => cluster.table.slots.filter((slot) => slot.ready).length;
    ask();
    for (let i = 0; i < 3; i += 1) {
      expect(ready()).toBe(3);
      const old = takeOver(cluster);
      expect(ready()).toBe(3);
      cluster.exit(old);
    }
    expect(ready()).toBe(3);
  });

  it('waits for each old worker to be gone before it begins with the next slot', () => {
    const { cluster, ask } = start(3);
    ask();
    for (const forked of [4, 5, 6]) {
      const old = takeOver(cluster);
      expect(cluster.forked).toHaveLength(forked);
      cluster.exit(old);
    }
  });

  it('is told of and counted, with its reason and how long it took', () => {
    const { cluster, ask } = start();
    ask();
    advance(cluster, 2);
    expect(cluster.events('reload-started')).toEqual([{ generation: 1, reason: 'test' }]);
    expect(cluster.events('reload-ended')).toEqual([{ ...COMPLETED, durationMs: 2 * CANARY_MS }]);
    expect(cluster.table.snapshot()).toMatchObject({
      generation: 1,
      reloads: { completed: 1, aborted: 0 },
    });
  });

  it('is over when the last old worker is gone, not before', () => {
    const { cluster, ask } = start(1);
    const told = ask();
    const old = takeOver(cluster);
    expect([told, cluster.events('reload-ended')]).toEqual([[], []]);
    cluster.exit(old);
    expect(told).toEqual([COMPLETED]);
  });

  it('changes what a slot that is added later runs, once it is completed', () => {
    const { cluster, ask } = start();
    ask();
    advance(cluster, 1);
    expect(cluster.table.release).toEqual(releaseOf(0));
    advance(cluster, 1);
    expect(cluster.table.release).toEqual(releaseOf(1));
    expect(cluster.table.resize(3)[0]!.release).toEqual(releaseOf(1));
  });

  it('replaces also a worker that was added while it was under way', () => {
    const { cluster, ask } = start(1);
    const told = ask();
    const [added] = cluster.table.resize(2);
    added!.current = cluster.fork(added!, added!.release, 'ready').handle;
    expect(advance(cluster, 2)).toEqual([0, 1]);
    expect(told).toEqual([COMPLETED]);
    expect(cluster.picture).toEqual(['0: gen=1 ready', '1: gen=1 ready']);
  });

  it('is completed without a slot that was taken away while it was under way', () => {
    const { cluster, ask } = start(2);
    const told = ask();
    cluster.table.resize(1);
    advance(cluster, 1);
    expect(told).toEqual([COMPLETED]);
  });

  it('waits for a replacement that is under way for another reason', () => {
    const { cluster, ask } = start();
    cluster.succession.request({
      slot: cluster.slot(1),
      cause: 'recycle',
      release: releaseOf(0),
      ended: () => {},
    });
    const told = ask();
    expect(activeSlot(cluster)).toBe(1);
    const old = cluster.current(1);
    cluster.becomeReady(cluster.candidate(1));
    cluster.exit(old);
    advance(cluster, 2);
    expect(told).toEqual([COMPLETED]);
  });
});

describe('a reload whose new worker fails', () => {
  it.each([
    ['the first', 0, ['0: gen=0 ready', '1: gen=0 ready', '2: gen=0 ready']],
    ['the second', 1, ['0: gen=1 ready', '1: gen=0 ready', '2: gen=0 ready']],
    ['the last', 2, ['0: gen=1 ready', '1: gen=1 ready', '2: gen=0 ready']],
  ])('is aborted at %s: whatever has not been replaced serves on (R4)', (_, after, picture) => {
    const { cluster, ask } = start(3);
    const told = ask();
    advance(cluster, after);
    cluster.exit(cluster.candidate(after), 'exited with code 1: Error: no such module');
    expect(told).toEqual([
      {
        outcome: 'aborted',
        generation: 1,
        reason: `worker=${after} gen=1: exited with code 1: Error: no such module`,
      },
    ]);
    expect(cluster.picture).toEqual(picture);
    expect(cluster.forked).toHaveLength(3 + after + 1);
    expect(cluster.events('reload-ended')).toEqual([{ ...told[0], durationMs: after * CANARY_MS }]);
  });

  it('is counted as aborted, and is no generation of the cluster', () => {
    const { cluster, ask } = start();
    ask();
    cluster.exit(cluster.candidate(0));
    expect(cluster.table.snapshot()).toMatchObject({
      generation: 0,
      reloads: { completed: 0, aborted: 1 },
    });
    expect(cluster.table.release).toEqual(releaseOf(0));
  });

  it('leaves the next one free to try, with a number of its own', () => {
    const { cluster, ask } = start();
    ask();
    advance(cluster, 1);
    cluster.exit(cluster.candidate(1));
    const told = ask();
    advance(cluster, 2);
    expect(told).toEqual([{ outcome: 'completed', generation: 2, reason: null }]);
    expect(cluster.picture).toEqual(['0: gen=2 ready', '1: gen=2 ready']);
    expect(cluster.events('reload-started').map(({ generation }) => generation)).toEqual([1, 2]);
    expect(cluster.table.reloads).toEqual({ completed: 1, aborted: 1 });
  });

  it('is told also to a worker that asked, which stays', () => {
    const { cluster, ask } = start();
    const told = ask(1);
    advance(cluster, 1);
    cluster.exit(cluster.candidate(1), 'boot');
    expect(told).toEqual([{ outcome: 'aborted', generation: 1, reason: 'worker=1 gen=1: boot' }]);
    expect(cluster.current(1).handle.state).toBe('ready');
  });
});

describe('a reload of a program that is not there', () => {
  it('is aborted before anything is forked, and says what is missing', () => {
    const { cluster, program, ask } = start();
    program.missing = 'the working directory /app/current is not there';
    const told = ask();
    expect(told).toEqual([{ outcome: 'aborted', generation: 1, reason: program.missing }]);
    expect(cluster.forked).toHaveLength(2);
    expect(cluster.events('reload-started')).toHaveLength(1);
    expect(cluster.events('reload-ended')).toMatchObject([{ reason: program.missing }]);
    expect(cluster.table.reloads).toEqual({ completed: 0, aborted: 1 });

    program.missing = undefined;
    const next = ask();
    advance(cluster, 2);
    expect(next).toEqual([{ outcome: 'completed', generation: 2, reason: null }]);
  });
});

describe('several reloads at once', () => {
  it('are one, and everybody is told how it ended (R9)', () => {
    const { cluster, ask } = start();
    const told = [ask(), ask()];
    advance(cluster, 1);
    told.push(ask());
    advance(cluster, 1);
    expect(told).toEqual([[COMPLETED], [COMPLETED], [COMPLETED]]);
    expect(cluster.events('reload-started')).toHaveLength(1);
    expect(cluster.events('reload-ended')).toHaveLength(1);
    expect(cluster.table.reloads).toEqual({ completed: 1, aborted: 0 });
    expect(cluster.forked).toHaveLength(4);
  });

  it('are aborted as one', () => {
    const { cluster, ask } = start();
    const told = [ask(), ask(1)];
    cluster.exit(cluster.candidate(0), 'boot');
    const aborted = { outcome: 'aborted', generation: 1, reason: 'worker=0 gen=1: boot' };
    expect(told).toEqual([[aborted], [aborted]]);
  });

  it('are two where one follows the other', () => {
    const { cluster, ask } = start();
    ask();
    advance(cluster, 2);
    const second = ask();
    expect(second).toEqual([]);
    advance(cluster, 2);
    expect(second).toEqual([{ outcome: 'completed', generation: 2, reason: null }]);
    expect(cluster.table.generation).toBe(2);
  });
});

describe('a worker that reloads its own cluster', () => {
  it.each([0, 1, 2])('is the last to be replaced: the one of slot %d', (asker) => {
    const { cluster, ask } = start(3);
    ask(asker);
    const others = [0, 1, 2].filter((slot) => slot !== asker);
    expect(advance(cluster, 3)).toEqual([...others, asker]);
  });

  it('is told before it drains: then it could not hear of it', () => {
    const { cluster, reload } = start(2);
    const old = cluster.current(0);
    let drainsWhenTold: number | undefined;
    const done = () => (drainsWhenTold = old.sent('drain').length);
    reload.run('test', { leaving: true, done }, cluster.slot(0));
    advance(cluster, 1);
    expect(drainsWhenTold).toBeUndefined();
    takeOver(cluster);
    expect(drainsWhenTold).toBe(0);
    expect(old.sent('drain')).toHaveLength(1);
  });

  it('is told once, and who stays is told when it has gone', () => {
    const { cluster, ask } = start(1);
    const [leaving, staying] = [ask(0), ask()];
    const old = takeOver(cluster);
    expect([leaving, staying]).toEqual([[COMPLETED], []]);
    cluster.exit(old);
    expect([leaving, staying]).toEqual([[COMPLETED], [COMPLETED]]);
  });

  it('is told also where it is the second to ask: it is not replaced before it can hear', () => {
    const { cluster, reload, ask } = start(3);
    ask();
    const old = cluster.current(1);
    let drainsWhenTold: number | undefined;
    const done = () => (drainsWhenTold = old.sent('drain').length);
    reload.run('test', { leaving: true, done }, cluster.slot(1));
    advance(cluster, 3);
    expect(drainsWhenTold).toBe(0);
  });

  it('is one of several: the first of them drains, still hears, and nobody waits for it', () => {
    const { cluster, ask } = start(3);
    const told = [ask(0), ask(2)];
    expect(advance(cluster, 1)).toEqual([1]);
    const first = takeOver(cluster);
    expect([first.handle.identity.slot, first.handle.state]).toEqual([0, 'draining']);
    expect(told).toEqual([[], []]);
    const second = takeOver(cluster);
    expect(second.sent('drain')).toHaveLength(1);
    expect(told).toEqual([[COMPLETED], [COMPLETED]]);
    for (const worker of [first, second]) cluster.exit(worker);
    expect(cluster.events('reload-ended')).toHaveLength(1);
    expect(cluster.picture).toEqual(['0: gen=1 ready', '1: gen=1 ready', '2: gen=1 ready']);
  });

  it('may ask while it is being replaced already: it drains, and still hears', () => {
    const { cluster, ask } = start(3);
    ask();
    const told = ask(0);
    takeOver(cluster);
    expect(told).toEqual([]);
    advance(cluster, 2);
    expect(told).toEqual([COMPLETED]);
  });

  it('is told also where its own worker is gone by then', () => {
    const { cluster, ask } = start(2);
    const told = ask(0);
    cluster.exit(cluster.current(0));
    advance(cluster, 1);
    const candidate = cluster.candidate(0);
    cluster.becomeReady(candidate);
    vi.advanceTimersByTime(CANARY_MS);
    cluster.answerCheck(candidate, true);
    expect(told).toEqual([COMPLETED]);
  });
});

describe('a reload of a cluster that shuts down', () => {
  it('is aborted with that reason', () => {
    const { cluster, ask } = start();
    const told = ask();
    cluster.succession.cancel('the cluster is shutting down');
    expect(told).toMatchObject([
      { outcome: 'aborted', reason: expect.stringContaining('shutting down') as string },
    ]);
    expect(cluster.forked).toHaveLength(3);
  });
});
