import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { ClusterUncloneableError } from '../../src/contract/errors/index.js';
import { resolveModuleOptions } from '../../src/contract/options/module.js';
import { definitionsOf } from '../../src/offload/cpu-bound.metadata.js';
import {
  TaskAbortedException,
  TaskTimeoutException,
  ThreadLostException,
} from '../../src/offload/offload.exceptions.js';
import { ThreadPool } from '../../src/offload/run/thread-pool.js';
import type { Watch } from '../../src/offload/run/runner.interface.js';
import type { Task, TaskOutcome } from '../../src/offload/task/task.js';
import { planOf, tasksOf } from '../../src/offload/task/tasks-of.js';

const FILE = fileURLToPath(new URL('../fixtures/behaviours/pooled.mjs', import.meta.url));
type Class = new () => object;
const { Pooled, PooledModule } = createRequire(import.meta.url)(FILE) as Record<string, Class>;

const METHODS = definitionsOf(Pooled!.prototype as object).map((definition) => ({
  name: `Pooled.${definition.method}`,
  definition,
  className: 'Pooled',
  instance: {},
  injected: true,
}));
// A machine that is busy may take long to start a thread.
const TASKS = tasksOf(METHODS, resolveModuleOptions({}, {}).offload).map((task): Task => ({
  ...task,
  queueTimeoutMs: 60_000,
}));
const PLAN = planOf(METHODS, PooledModule, FILE, undefined);

/** TypeScript has its type from ES2024. */
const atomics = Atomics as unknown as {
  waitAsync(shared: Int32Array, index: number, value: number): { readonly value: unknown };
};

/** Memory that a call shares with its test. */
class Gate {
  readonly shared = new Int32Array(new SharedArrayBuffer(8));

  /** The number of the thread, once it has come here. */
  async thread(): Promise<number> {
    await atomics.waitAsync(this.shared, 0, 0).value;
    return this.shared[0]!;
  }

  open(): void {
    Atomics.store(this.shared, 1, 1);
    Atomics.notify(this.shared, 1);
  }
}

/** The client of a call. */
class Client {
  leave = (): void => {};
  watches = 0;

  readonly watch: Watch = (gone) => {
    this.leave = gone;
    this.watches += 1;
    return () => (this.watches -= 1);
  };
}

function start({ threads = 1, minThreads = 0, maxQueue = 10 } = {}, plan = PLAN) {
  const outcomes: TaskOutcome[] = [];
  const lost: unknown[] = [];
  const pool = new ThreadPool(
    plan,
    { threads, minThreads, maxQueue },
    { began() {}, ran() {}, ended: (_, outcome) => outcomes.push(outcome) },
    { lost: (_, error) => lost.push(error), died() {}, lostClass() {} },
  );
  onTestFinished(() => pool.close());
  const call = (
    name: string,
    args: unknown[] = [],
    { client = new Client(), ...about }: Partial<Task> & { client?: Client } = {},
  ): Promise<unknown> => {
    const task = TASKS.find((each) => each.name === `Pooled.${name}`)!;
    const result = pool.submit({ ...task, ...about }, args, undefined, client.watch);
    // Some tests look at a failure later than it comes.
    result.catch(() => {});
    return result;
  };
  /** A call that runs until its gate opens. */
  const hold = async (about?: Parameters<typeof call>[2]) => {
    const gate = new Gate();
    const result = call('hold', [gate.shared], about);
    return { gate, result, thread: await gate.thread() };
  };
  return { pool, outcomes, lost, call, hold };
}

describe('calls', () => {
  it('run in the order in which they were made', async () => {
    const { hold, call, pool, outcomes } = start();
    const { gate } = await hold();
    const order: unknown[] = [];
    const others = [1, 2, 3, 4].map(async (n) => order.push(await call('echo', [n])));
    expect(pool.snapshot()).toEqual({ threads: 1, running: 1, queueSize: 4 });
    gate.open();
    await Promise.all(others);
    expect(order).toEqual([1, 2, 3, 4]);
    expect(outcomes).toEqual(Array.from({ length: 5 }, () => 'completed'));
    expect(pool.snapshot()).toEqual({ threads: 1, running: 0, queueSize: 0 });
  });

  it('run in as many threads as there may be, and not in one that still loads', async () => {
    const { hold, call, pool } = start({ threads: 2 });
    const [first, others] = [await hold(), [call('where'), call('where')]];
    first.gate.open();
    expect(await others[0]).toBe(first.thread);
    await others[1];
    const both = await Promise.all([hold(), hold()]);
    expect(both[0]!.thread).not.toBe(both[1]!.thread);
    expect(pool.snapshot()).toEqual({ threads: 2, running: 2, queueSize: 0 });
  });

  it('are refused if threads and queue are full', async () => {
    const { hold, call, outcomes } = start({ maxQueue: 1 });
    const { gate } = await hold();
    const waiting = call('echo', [1]);
    await expect(call('echo')).rejects.toMatchObject({ reason: 'queue-full' });
    gate.open();
    expect(await waiting).toBe(1);
    expect(await call('echo', [2])).toBe(2);
    expect(outcomes).toEqual(['rejected', 'completed', 'completed', 'completed']);
  });

  it('are refused if they wait for too long', async () => {
    const { hold, call, outcomes, pool } = start();
    await hold();
    await expect(call('echo', [], { queueTimeoutMs: 20 })).rejects.toMatchObject({
      reason: 'queue-timeout',
    });
    expect(outcomes).toEqual(['queue_timeout']);
    expect(pool.snapshot()).toEqual({ threads: 1, running: 1, queueSize: 0 });
  });

  it('end with their thread after their timeout, and a waiting call gets a new one', async () => {
    const { hold, call, outcomes, lost } = start();
    const { thread, result } = await hold({ timeoutMs: 100 });
    const waiting = call('where');
    await expect(result).rejects.toThrow(TaskTimeoutException);
    expect(await waiting).not.toBe(thread);
    expect([outcomes, lost]).toEqual([['timeout', 'completed'], []]);
  });

  it('fail if their thread ends, and the others run', async () => {
    const { call, outcomes, lost } = start();
    const [failed, waiting] = [call('exit'), call('echo', [1])];
    await expect(failed).rejects.toThrow(ThreadLostException);
    await expect(failed).rejects.toMatchObject({ cause: lost[0] });
    expect(String(lost[0])).toContain('exited with code: 3');
    expect([await waiting, await call('echo', [2])]).toEqual([1, 2]);
    expect(outcomes).toEqual(['thread_lost', 'completed', 'completed']);
  });

  it('fail if an argument or the result cannot be copied, and the thread lives on', async () => {
    const { call, outcomes, lost } = start();
    const thread = await call('where');
    for (const argument of [() => 1, new ReadableStream()]) {
      await expect(call('echo', [argument])).rejects.toThrow(ClusterUncloneableError);
    }
    await expect(call('uncloneable')).rejects.toThrow(ClusterUncloneableError);
    expect(await call('where')).toBe(thread);
    expect(outcomes).toEqual(['completed', 'failed', 'failed', 'failed', 'completed']);
    expect(lost).toEqual([]);
  });
});

describe('the call of a client that has left', () => {
  it('is taken from the queue', async () => {
    const { hold, call, pool, outcomes } = start();
    const { gate, result, thread } = await hold();
    const client = new Client();
    const waiting = call('echo', [1], { client });
    client.leave();
    await expect(waiting).rejects.toThrow(TaskAbortedException);
    expect([pool.snapshot().queueSize, client.watches]).toEqual([0, 0]);
    gate.open();
    expect(await result).toBe(thread);
    expect(outcomes).toEqual(['aborted', 'completed']);
  });

  it('goes on if it runs', async () => {
    const { hold } = start();
    const client = new Client();
    const { gate, result, thread } = await hold({ client });
    client.leave();
    gate.open();
    expect(await result).toBe(thread);
  });

  it('ends with its thread if it runs with abortOnDisconnect', async () => {
    const { hold, call, outcomes } = start();
    const client = new Client();
    const { result, thread } = await hold({ client, abortOnDisconnect: true });
    client.leave();
    await expect(result).rejects.toThrow(TaskAbortedException);
    expect(await call('where')).not.toBe(thread);
    expect(outcomes).toEqual(['aborted', 'completed']);
  });

  it('leaves nothing behind, also if it is one of a thousand', async () => {
    const { hold, call, pool, outcomes } = start({ threads: 2, maxQueue: 1_000 });
    const client = new Client();
    const held = await Promise.all([hold(), hold({ client, abortOnDisconnect: true })]);
    const clients = Array.from({ length: 999 }, () => new Client());
    const calls = clients.map((each) => call('echo', [1], { client: each }));
    expect(pool.snapshot()).toEqual({ threads: 2, running: 2, queueSize: 999 });
    for (const each of [client, ...clients]) each.leave();
    await Promise.allSettled([held[1]!.result, ...calls]);
    held[0]!.gate.open();
    await held[0]!.result;
    expect(new Set(outcomes.slice(0, 1_000))).toEqual(new Set(['aborted']));
    expect([client, ...clients].every(({ watches }) => watches === 0)).toBe(true);
    expect(pool.hasCallFrom(Infinity)).toBe(false);
    expect(pool.snapshot()).toMatchObject({ running: 0, queueSize: 0 });
    expect(await call('echo', [1])).toBe(1);
    expect(pool.snapshot().threads).toBeLessThanOrEqual(2);
  });
});

describe('threads', () => {
  it('end with their module closed if no call comes, and the next call starts one', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const { call, pool } = start();
    const gate = new Gate();
    const thread = await call('where', [gate.shared]);
    vi.advanceTimersByTime(59_000);
    expect(await call('where', [gate.shared])).toBe(thread);
    vi.advanceTimersByTime(59_000);
    expect(pool.snapshot().threads).toBe(1);
    vi.advanceTimersByTime(1_000);
    expect(pool.snapshot().threads).toBe(0);
    expect(await gate.thread()).toBe(thread);
    expect(await call('where')).not.toBe(thread);
  });

  it('start without a call if they are kept, and are kept if no call comes', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const { call, pool } = start({ threads: 2, minThreads: 1 });
    pool.keep();
    const thread = await call('where');
    vi.advanceTimersByTime(600_000);
    expect(pool.snapshot().threads).toBe(1);
    expect(await call('where')).toBe(thread);
  });

  it('end if the pool is closed: no call is left', async () => {
    const { hold, call, pool, outcomes } = start({ threads: 2 });
    const held = await Promise.all([hold(), hold()]);
    const waiting = call('echo');
    await pool.close();
    for (const { result } of held) await expect(result).rejects.toThrow(TaskAbortedException);
    await expect(waiting).rejects.toMatchObject({ reason: 'closing' });
    await expect(call('echo')).rejects.toMatchObject({ reason: 'closing' });
    expect(outcomes.toSorted()).toEqual(['aborted', 'aborted', 'rejected', 'rejected']);
    expect(pool.snapshot()).toEqual({ threads: 0, running: 0, queueSize: 0 });
  });

  it('close their module if the pool is closed', async () => {
    const { call, pool } = start();
    const gate = new Gate();
    const thread = await call('where', [gate.shared]);
    await pool.close();
    expect(await gate.thread()).toBe(thread);
  });
});

describe('the check', () => {
  it('finds nothing if all tasks load, and its thread ends', async () => {
    const { pool } = start();
    expect(await pool.check()).toEqual([]);
    expect(pool.snapshot().threads).toBe(0);
  });

  it('names what a thread cannot load', async () => {
    const [task] = PLAN.tasks;
    const site = { file: '/gone.mjs', place: '' };
    const { pool } = start({}, { ...PLAN, tasks: [{ ...task!, site }] });
    expect(await pool.check()).toEqual([
      expect.stringMatching(/^a thread cannot import \/gone\.mjs, which declares Pooled\.hold: /),
    ]);
  });
});
