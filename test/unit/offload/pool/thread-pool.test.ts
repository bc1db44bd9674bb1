import { utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ThreadPool } from '../../../../src/offload/pool/thread-pool.js';
import type { PooledThread, ThreadEvents } from '../../../../src/offload/pool/pool-thread.js';
import type { ThreadPlan } from '../../../../src/offload/thread/plan.js';
import type { Problem } from '../../../../src/offload/thread/problem.js';
import { temporaryDirectory } from '../../../support/temporary-directory.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const PLAN = { tasks: [], module: undefined, main: undefined };
const REQUEST = { task: 0, args: [], contexts: undefined };
const MINUTE_MS = 60_000;
const WELL: readonly Problem[] = [];
const ILL: readonly Problem[] = [
  { kind: 'import', task: 'A.a', file: '/a.js', className: 'A', reason: 'gone' },
];

/** A thread that does as it is told. */
class FakeThread implements PooledThread {
  state: PooledThread['state'] = 'starting';
  since = 0;
  isIdle = false;
  left = false;
  tell!: (report: readonly Problem[]) => void;
  die!: (error: Error) => void;
  exit!: () => void;
  readonly report = new Promise<readonly Problem[]>((tell, die) =>
    Object.assign(this, { tell, die }),
  );
  readonly exited = new Promise<void>((exit) => Object.assign(this, { exit }));

  constructor(readonly events: ThreadEvents) {}

  becomeReady(): void {
    this.state = 'ready';
    this.isIdle = true;
    this.since = performance.now();
  }
  run() {
    this.isIdle = false;
    this.since = performance.now();
    return { result: new Promise<never>(() => {}), abort: () => this.lose() };
  }
  finish(): void {
    this.isIdle = true;
    this.since = performance.now();
  }
  async leave(): Promise<void> {
    this.left = true;
    this.end();
  }
  end(): void {
    this.state = 'ended';
    this.isIdle = false;
  }
  lose(): void {
    this.end();
    this.events.lost();
  }
}

function start({ threads = 3, minThreads = 0 } = {}, plan: ThreadPlan = PLAN) {
  const all: FakeThread[] = [];
  const warnings: string[] = [];
  const unfit: string[] = [];
  let changes = 0;
  const options = { threads, minThreads };
  const pool = new ThreadPool(
    plan,
    options,
    {
      changed: () => (changes += 1),
      warning: (message) => warnings.push(message),
      warnOfAll: (message) => warnings.push(message),
      unfit: (reason) => unfit.push(reason),
    },
    (events) => {
      const thread = new FakeThread(events);
      all.push(thread);
      return thread;
    },
  );
  const settle = () => vi.advanceTimersByTimeAsync(0);
  return {
    pool,
    all,
    warnings,
    unfit,
    settle,
    changes: () => changes,
    /** So many are there, with nothing to do. */
    ready: async (count: number) => {
      pool.expect(count);
      for (const thread of all) thread.tell(WELL);
      await settle();
    },
  };
}

describe('threads', () => {
  it('come when calls wait, one for each, up to the limit', async () => {
    const { pool, all } = start();
    expect([pool.size, pool.threads, pool.spare, pool.idle]).toEqual([3, 0, 3, 0]);
    pool.expect(1);
    pool.expect(1);
    expect(all).toHaveLength(1);
    pool.expect(5);
    expect(all).toHaveLength(3);
    expect([pool.size, pool.threads, pool.spare, pool.idle]).toEqual([3, 3, 3, 0]);
  });

  it('are told of as soon as they can work, and not counted as spare then', async () => {
    const { pool, ready, changes } = start();
    await ready(2);
    expect([pool.spare, pool.idle, changes()]).toEqual([1, 2, 2]);
    pool.expect(2);
    expect(pool.threads).toBe(2);
    pool.run(REQUEST);
    expect([pool.spare, pool.idle]).toEqual([1, 1]);
  });

  it('end after a minute without a call, the last ones first, but for those that are kept', async () => {
    const { pool, all, ready } = start({ minThreads: 1 });
    await ready(3);
    await vi.advanceTimersByTimeAsync(MINUTE_MS / 2);
    pool.run(REQUEST);
    all[0]!.finish();
    await vi.advanceTimersByTimeAsync(MINUTE_MS / 2 - 5_000);
    expect(pool.threads).toBe(3);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(all.map(({ left }) => left)).toEqual([false, true, true]);
    await vi.advanceTimersByTimeAsync(10 * MINUTE_MS);
    expect([pool.threads, vi.getTimerCount()]).toEqual([1, 0]);
    pool.expect(2);
    expect(pool.threads).toBe(2);
  });

  it('do not end while they work', async () => {
    const { pool, all, ready } = start();
    await ready(1);
    pool.run(REQUEST);
    await vi.advanceTimersByTimeAsync(10 * MINUTE_MS);
    expect([pool.threads, all[0]!.left]).toEqual([1, false]);
    all[0]!.finish();
    await vi.advanceTimersByTimeAsync(MINUTE_MS + 5_000);
    expect(pool.threads).toBe(0);
  });

  it('that are kept start when the process serves, no more than there may be', () => {
    const { pool } = start({ threads: 2, minThreads: 2 });
    expect(pool.threads).toBe(0);
    pool.keep();
    pool.keep();
    expect(pool.threads).toBe(2);
  });

  it('that are lost are replaced at once, and so are those whose calls are ended', async () => {
    const { pool, all, ready } = start();
    await ready(2);
    all[1]!.lose();
    expect([pool.threads, all.length]).toEqual([2, 3]);
    pool.run(REQUEST).abort();
    expect([pool.threads, all.length]).toEqual([2, 4]);
  });

  it('that native code holds keep others from taking their cores, and the process is unfit', async () => {
    const { pool, all, ready, unfit, settle } = start({ threads: 1 });
    await ready(1);
    pool.run(REQUEST).abort();
    all[1]!.tell(WELL);
    await settle();
    expect([pool.threads, pool.idle]).toEqual([1, 0]);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(unfit).toEqual(['a thread that was to be ended is held by native code']);
    all[0]!.exit();
    await settle();
    expect(pool.idle).toBe(1);
  });
});

describe('a thread that cannot do its work', () => {
  it('is tried again, ever later, and until then there are those that can', async () => {
    const { pool, all, warnings, unfit, settle, changes } = start();
    pool.expect(1);
    all[0]!.tell(ILL);
    await settle();
    expect([pool.size, pool.spare, pool.threads, changes()]).toEqual([0, 0, 0, 1]);
    pool.expect(1);
    expect(all).toHaveLength(1);
    expect(warnings).toEqual([
      expect.stringMatching(/^threads do not start: a thread cannot import .*gone.* in 1000 ms$/),
    ]);
    await vi.advanceTimersByTimeAsync(1_000);
    expect([pool.size, all.length, unfit]).toEqual([0, 2, []]);
    all[1]!.die(new Error('exited'));
    await settle();
    expect(unfit).toEqual(['its threads do not start']);
    await vi.advanceTimersByTimeAsync(2_000);
    all[2]!.tell(WELL);
    await settle();
    expect([pool.size, pool.idle, pool.spare]).toEqual([3, 1, 2]);
  });

  it('leaves those that work as they are', async () => {
    const { pool, all, ready, settle, unfit } = start();
    await ready(1);
    pool.expect(2);
    all[1]!.tell(ILL);
    await settle();
    expect([pool.size, pool.idle, pool.spare, unfit]).toEqual([1, 1, 0, []]);
  });
});

describe('the check', () => {
  it('is by a thread that goes again, and says what stands in the way', async () => {
    const { pool, all } = start();
    const well = pool.check();
    all[0]!.tell(WELL);
    expect(await well).toEqual([]);
    expect([pool.threads, all[0]!.left]).toEqual([0, true]);
    const ill = pool.check();
    all[1]!.tell(ILL);
    expect(await ill).toEqual([expect.stringContaining('a thread cannot import /a.js')]);
    const dead = pool.check();
    all[2]!.die(new Error('worker exited with code: 3'));
    expect(await dead).toEqual([expect.stringContaining('exited with code: 3')]);
    expect([pool.size, pool.threads]).toEqual([3, 0]);
  });

  it('refuses no process of which a compiler has just written a file', async () => {
    const file = join(temporaryDirectory(), 'a.js');
    writeFileSync(file, '');
    const soon = Date.now() / 1_000 + 0.5;
    utimesSync(file, soon, soon);
    const task = { name: 'A.a', className: 'A', injected: false, site: { file, place: '' } };
    const { pool, all, warnings } = start({}, { ...PLAN, tasks: [task] });
    const written = pool.check();
    all[0]!.tell(ILL);
    expect(await written).toEqual([]);
    expect(new Set(warnings)).toEqual(new Set([expect.stringContaining(`threads run ${file}`)]));
    utimesSync(file, 1, 1);
    const old = pool.check();
    all[1]!.tell(ILL);
    expect(await old).toHaveLength(1);
  });

  it('needs none where a thread is at work', async () => {
    const { pool, all, ready } = start();
    await ready(1);
    expect(await pool.check()).toEqual([]);
    expect(all).toHaveLength(1);
  });
});

describe('the end of a pool', () => {
  it('lets idle threads go first, ends the others, and starts none', async () => {
    const { pool, all, ready } = start();
    await ready(2);
    pool.run(REQUEST);
    const closed = pool.close();
    for (const thread of all) thread.exit();
    await closed;
    expect(all.map(({ left, state }) => [left, state])).toEqual([
      [false, 'ended'],
      [true, 'ended'],
    ]);
    pool.expect(3);
    pool.keep();
    expect(all).toHaveLength(2);
  });

  it('does not wait for one that native code holds', async () => {
    const { pool, ready } = start();
    await ready(1);
    pool.run(REQUEST);
    const closed = pool.close();
    await vi.advanceTimersByTimeAsync(2_000);
    await closed;
  });
});
