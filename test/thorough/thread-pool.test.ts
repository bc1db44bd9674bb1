import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { ClusterUncloneableError } from '../../src/contract/errors/errors.js';
import { definitionsOf } from '../../src/offload/cpu-bound.decorator.js';
import {
  TaskAbortedException,
  TaskTimeoutException,
  ThreadLostException,
} from '../../src/offload/offload.exceptions.js';
import { Calls } from '../../src/offload/run/calls.js';
import type { Task, TaskOutcome, Watch } from '../../src/offload/run/runner.interface.js';
import { ThreadPool } from '../../src/offload/run/thread-pool.js';
import type { PlannedTask, ThreadPlan } from '../../src/offload/thread/thread-host.js';

const FILE = fileURLToPath(new URL('../fixtures/behaviours/pooled.mjs', import.meta.url));
const { Pooled } = createRequire(import.meta.url)(FILE) as { Pooled: { prototype: object } };

const TASKS = definitionsOf(Pooled.prototype).map(({ method }, index): Task => ({
  name: `Pooled.${method}`,
  index,
  timeoutMs: 30_000,
  queueTimeoutMs: 60_000, // a busy machine may take long to start a thread
  abortOnDisconnect: false,
  queue: undefined,
}));

/** A plan of the tasks with changes, such as another file. */
function planOf(about: Partial<PlannedTask> = {}, module = 'PooledModule'): ThreadPlan {
  const planned = { file: FILE, className: 'Pooled', injected: true, ...about };
  return {
    tasks: TASKS.map(({ name }) => ({ name, ...planned })),
    module: { name: module, file: FILE },
    main: undefined,
  };
}

/** A file of an app that a test writes and removes. */
function appFile(): string {
  const directory = mkdtempSync(join(tmpdir(), 'nestjs-cluster-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return join(directory, 'tasks.mjs');
}

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

function start({ threads = 1, minThreads = 0, maxQueue = 10 } = {}, plan = planOf()) {
  const outcomes: TaskOutcome[] = [];
  const lost: unknown[] = [];
  const died = vi.fn<(error: unknown) => void>();
  const calls = new Calls({ began() {}, ran() {}, ended: (_, each) => void outcomes.push(each) });
  const pool = new ThreadPool(plan, { threads, minThreads, maxQueue }, calls, {
    lost: (_, error) => lost.push(error),
    died,
    lostClass() {},
  });
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
  const state = () => ({
    threads: pool.threads,
    running: calls.running,
    queueSize: calls.size - calls.running,
  });
  return { pool, state, outcomes, lost, died, call, hold };
}

describe('calls', () => {
  it('run in the order in which they were made', async () => {
    const { hold, call, state, outcomes } = start();
    const { gate } = await hold();
    const order: unknown[] = [];
    const others = [1, 2, 3, 4].map(async (n) => order.push(await call('echo', [n])));
    expect(state()).toEqual({ threads: 1, running: 1, queueSize: 4 });
    gate.open();
    await Promise.all(others);
    expect(order).toEqual([1, 2, 3, 4]);
    expect(outcomes).toEqual(Array.from({ length: 5 }, () => 'completed'));
    expect(state()).toEqual({ threads: 1, running: 0, queueSize: 0 });
  });

  it('run in as many threads as there may be, and not in one that still loads', async () => {
    const { hold, call, state } = start({ threads: 2 });
    const [first, others] = [await hold(), [call('where'), call('where')]];
    first.gate.open();
    expect(await others[0]).toBe(first.thread);
    await others[1];
    const both = await Promise.all([hold(), hold()]);
    expect(both[0]!.thread).not.toBe(both[1]!.thread);
    expect(state()).toEqual({ threads: 2, running: 2, queueSize: 0 });
  });

  it('that waited run in as many threads at once as there are', async () => {
    const { hold } = start({ threads: 2 });
    const first = await Promise.all([hold(), hold()]);
    const waited = Promise.all([hold(), hold()]);
    for (const { gate } of first) gate.open();
    for (const { gate } of await waited) gate.open();
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
    const { hold, call, outcomes, state } = start();
    await hold();
    await expect(call('echo', [], { queueTimeoutMs: 20 })).rejects.toMatchObject({
      reason: 'queue-timeout',
    });
    expect(outcomes).toEqual(['queue_timeout']);
    expect(state()).toEqual({ threads: 1, running: 1, queueSize: 0 });
  });

  it('end with their thread after their timeout, and a waiting call gets a new one', async () => {
    const { hold, call, outcomes, lost } = start();
    const { thread, result } = await hold({ timeoutMs: 2_000 });
    const waiting = call('where');
    await expect(result).rejects.toThrow(TaskTimeoutException);
    expect(await waiting).not.toBe(thread);
    expect([outcomes, lost]).toEqual([['timeout', 'completed'], []]);
  });

  it.each([
    ['exit', 0, 'exited with code: 0'],
    ['exit', 3, 'exited with code: 3'],
    ['throw', 'outside of the call', 'Error: outside of the call'],
  ])('fail if their thread ends, and the others run: %s(%j)', async (method, argument, reason) => {
    const { call, outcomes, lost } = start();
    const [failed, waiting] = [call(method, [argument]), call('echo', [1])];
    await expect(failed).rejects.toThrow(ThreadLostException);
    await expect(failed).rejects.toMatchObject({ cause: lost[0] });
    expect(String(lost[0])).toContain(reason);
    expect([await waiting, await call('echo', [2])]).toEqual([1, 2]);
    expect(outcomes).toEqual(['thread_lost', 'completed', 'completed']);
  });

  it('fail if an argument or the result cannot be copied, and the thread lives on', async () => {
    const { call, outcomes, lost } = start();
    const thread = await call('where');
    const nested = [4_000, 45_000].map((n): unknown => JSON.parse('['.repeat(n) + ']'.repeat(n)));
    for (const argument of [() => 1, new ReadableStream(), ...nested]) {
      await expect(call('echo', [argument])).rejects.toThrow(ClusterUncloneableError);
    }
    await expect(call('uncloneable')).rejects.toThrow(ClusterUncloneableError);
    expect(await call('where')).toBe(thread);
    expect(outcomes).toEqual([
      'completed',
      ...Array.from({ length: 5 }, () => 'failed'),
      'completed',
    ]);
    expect(lost).toEqual([]);
  });
});

it('a Buffer is a Buffer in the thread, and in the result', async () => {
  const { call } = start();
  expect(await call('inspect', [Buffer.from('x')])).toEqual(Buffer.from('<Buffer 78>'));
});

describe('the call of a client that has left', () => {
  it('is taken from the queue', async () => {
    const { hold, call, state, outcomes } = start();
    const { gate, result, thread } = await hold();
    const client = new Client();
    const waiting = call('echo', [1], { client });
    client.leave();
    await expect(waiting).rejects.toThrow(TaskAbortedException);
    expect([state().queueSize, client.watches]).toEqual([0, 0]);
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
    expect(pool.threads).toBe(1);
    vi.advanceTimersByTime(1_000);
    expect(pool.threads).toBe(0);
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
    expect(pool.threads).toBe(1);
    expect(await call('where')).toBe(thread);
  });

  it('end if the pool is closed: no call is left', async () => {
    const { hold, call, pool, state, outcomes } = start({ threads: 2 });
    const held = await Promise.all([hold(), hold()]);
    const waiting = call('echo');
    await pool.close();
    for (const { result } of held) await expect(result).rejects.toThrow(TaskAbortedException);
    await expect(waiting).rejects.toMatchObject({ reason: 'closing' });
    await expect(call('echo')).rejects.toMatchObject({ reason: 'closing' });
    expect(outcomes.toSorted()).toEqual(['aborted', 'aborted', 'rejected', 'rejected']);
    expect(state()).toEqual({ threads: 0, running: 0, queueSize: 0 });
  });

  it('close their module if the pool is closed', async () => {
    const { call, pool } = start();
    const gate = new Gate();
    const thread = await call('where', [gate.shared]);
    await pool.close();
    expect(await gate.thread()).toBe(thread);
  });

  it('are replaced if an error ends them outside of any call', async () => {
    const { call, died } = start();
    const gate = new Gate();
    const thread = await call('reject', [gate.shared]);
    gate.open();
    await vi.waitFor(() => expect(died).toHaveBeenCalledOnce());
    expect(String(died.mock.calls[0])).toBe('Error: outside of any call');
    expect(await call('where')).not.toBe(thread);
  });

  it('fail their call if the file of the app is missing, and load it when it is back', async () => {
    const file = appFile();
    const { call, lost } = start({}, planOf({ file }));
    await expect(call('where')).rejects.toThrow(ThreadLostException);
    expect(String(lost)).toContain(`a thread cannot import ${file}, which declares Pooled.where: `);
    const source = readFileSync(FILE, 'utf8');
    const url = (_: string, name: string) => `from ${JSON.stringify(import.meta.resolve(name))}`;
    writeFileSync(file, source.replace(/from '([^']*)'/g, url));
    expect(await call('echo', [1])).toBe(1);
  });
});

describe('the check', () => {
  it('finds nothing if all tasks load, and its thread ends', async () => {
    const { pool } = start();
    expect(await pool.check()).toEqual([]);
    expect(pool.threads).toBe(0);
  });

  it('names each reason why threads cannot load a task, once for all of its tasks', async () => {
    const [task] = planOf().tasks;
    const broken = { ...task!, name: 'Broken.run', className: 'Broken', injected: false };
    const hidden = { ...task!, className: 'Hidden' };
    const plan = planOf({ injected: false }, 'BrokenModule');
    const tasks = [
      { ...task!, file: '/gone.mjs' },
      { ...task!, file: '/gone.ts' },
      { ...hidden, name: 'Hidden.run' },
      { ...hidden, name: 'Hidden.stop' },
      broken,
      task!,
    ];
    const { pool } = start({}, { ...plan, tasks });
    const inline =
      'set CLUSTER_OFFLOAD=inline to run @CpuBound() methods on the event loop, as tests do';
    const problems = (await pool.check()).map((each) =>
      each.replace(/Cannot find \S+ .*?(?=\. )/, '…'),
    );
    expect(problems.map((each) => each.replaceAll(FILE, '<file>').replace(/:\d+:\d+/, ''))).toEqual(
      [
        `a thread cannot import /gone.mjs, which declares Pooled.hold: Error: …. Make sure that the code that runs on import also works in a thread, or move the class to its own file, or ${inline}`,
        `a thread cannot import /gone.ts, which declares Pooled.hold: Error: …. Node cannot load this TypeScript file: start the app from the output of tsc or SWC, or use a loader that works in threads (tsx on Node 22 or later), or ${inline}`,
        `a thread has imported <file>, but the import did not declare the class Hidden with Hidden.run, Hidden.stop, or declared several classes by that name. Declare the class at the top level of its file, not in a function. If the file is a bundle, import the app's module at the top of main.ts, or pass bootstrap() a function that only imports a file: () => import('./app.js'); or ${inline}`,
        'a thread has imported <file>, but cannot create an instance of Broken for Broken.run: TypeError: not built in threads at new Broken (file://<file>). Provide its dependencies in offload.module, and make sure that its constructor works in a thread',
        'a thread cannot initialise offload.module (BrokenModule): RangeError: too many connections at InstanceWrapper.useFactory [as metatype] (file://<file>); make sure that its providers work in a thread (needed by Pooled.hold)',
      ],
    );
  });

  it('says why offload.module is not found', async () => {
    const { pool } = start({}, planOf({}, 'HiddenModule'));
    const [problem] = await pool.check();
    expect(problem).toMatch(
      `a thread cannot find offload.module (HiddenModule): it has imported ${FILE}, ` +
        'but the import did not call forRoot(). Call forRoot() in a @Module() decorator, or export HiddenModule from the file (needed by Pooled.',
    );
  });

  it('names the files if the import ends the thread', async () => {
    const file = appFile();
    writeFileSync(file, 'process.exit(3)');
    const { pool } = start({}, planOf({ file }));
    expect(await pool.check()).toEqual([
      `a thread exited while loading ${file} (Error: worker exited with code: 3); remove process.exit() from the code that runs on import`,
    ]);
  });
});
