import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ClusterUncloneableError } from '../../../../src/contract/errors/index.js';
import type { CarriedContexts } from '../../../../src/offload/task/carry-context.js';
import { Dispatcher } from '../../../../src/offload/admission/dispatcher.js';
import { move } from '../../../../src/offload/admission/move.js';
import {
  TaskAbortedException,
  TaskRejectedException,
  TaskTimeoutException,
  ThreadLostException,
} from '../../../../src/offload/offload.exceptions.js';
import type { Task } from '../../../../src/offload/task/task.js';
import { FakeObserver, FakeRunner, FakeWaitingClient, TASK } from '../../support/fake-runner.js';

const GRACE_MS = 50;
/** With fake timers a turn of the event loop takes a millisecond. */
const TURN_MS = 1;

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  // Whatever came about: nothing is left behind.
  for (const { dispatcher, callers } of started.splice(0)) {
    expect(callers.filter(({ state }) => state === 'waiting')).toEqual([]);
    expect([dispatcher.running.size, dispatcher.queueSize]).toEqual([0, 0]);
    expect(callers.map(({ client }) => client.watches)).toEqual(callers.map(() => 0));
  }
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

/** One who has submitted something, and what came of it. */
interface Caller {
  readonly client: FakeWaitingClient;
  state: 'waiting' | 'answered' | 'refused';
  value?: unknown;
  error?: unknown;
}

interface Submission {
  task?: Task;
  client?: FakeWaitingClient;
  contexts?: CarriedContexts;
}

const started: { dispatcher: Dispatcher; callers: Caller[] }[] = [];

function start({ threads = 1, maxQueue = 10 } = {}) {
  const runner = new FakeRunner(threads);
  const observer = new FakeObserver();
  const reports: [string, unknown][] = [];
  const dispatcher = new Dispatcher(runner, maxQueue, observer, ({ name }, error) =>
    reports.push([name, error]),
  );
  const callers: Caller[] = [];
  started.push({ dispatcher, callers });
  const submit = (
    args: unknown[] = [],
    { task = TASK, client = new FakeWaitingClient(), contexts }: Submission = {},
  ): Caller => {
    const caller: Caller = { client, state: 'waiting' };
    callers.push(caller);
    dispatcher.submit(task, args, contexts, client.watch).then(
      (value) => Object.assign(caller, { state: 'answered', value }),
      (error: unknown) => Object.assign(caller, { state: 'refused', error }),
    );
    return caller;
  };
  return {
    runner,
    observer,
    reports,
    dispatcher,
    submit,
    /** First arguments of the calls that have begun, in their order. */
    begun: () => runner.runs.map(({ request }) => request.args[0]),
    finishAll: async () => {
      while (runner.active.length > 0) {
        runner.active[0]!.complete();
        await settled();
      }
    },
  };
}

/** All that was to happen by now has. */
const settled = () => vi.advanceTimersByTimeAsync(3 * TURN_MS);

const rejection = (reason: string, retryAfterSeconds = 1) => ({
  state: 'refused',
  error: expect.objectContaining({ reason, retryAfterSeconds, task: TASK.name }) as unknown,
});

describe('a call', () => {
  it('is given to a free thread with its arguments and contexts, and answered', async () => {
    const { runner, observer, submit } = start();
    const caller = submit([1, 'a'], { contexts: { request: { id: 7 } } });
    expect(runner.runs[0]!.request).toEqual({
      task: 0,
      args: [1, 'a'],
      contexts: { request: { id: 7 } },
    });
    vi.advanceTimersByTime(40);
    runner.runs[0]!.complete({ image: new Uint8Array([3]) }, { buffers: [[0, 'image']] });
    await settled();
    expect(caller).toMatchObject({ state: 'answered', value: { image: Buffer.from([3]) } });
    expect(observer).toEqual({ waited: [0], runMs: [40], outcomes: ['completed'] });
  });

  it('needs nobody whose going away could be watched', async () => {
    const { dispatcher, runner } = start();
    const result = dispatcher.submit(TASK, [], undefined);
    runner.runs[0]!.complete(5);
    expect(await result).toBe(5);
  });

  it('rejects with what its body has thrown', async () => {
    const { runner, observer, submit, reports } = start();
    const caller = submit();
    runner.runs[0]!.fail(Object.assign(new RangeError('too many'), { code: 'CATS' }));
    await settled();
    expect(caller.error).toBeInstanceOf(RangeError);
    expect(caller.error).toMatchObject({ message: 'too many', code: 'CATS' });
    expect(observer).toMatchObject({ runMs: [0], outcomes: ['failed'] });
    expect(reports).toEqual([]);
  });
});

// dispatcher-invariants.test.ts shows what holds in any order of events.
describe('admission', () => {
  it('lets nobody overtake who waits, also where a thread has become free of which nothing was said', async () => {
    const { runner, dispatcher, submit, begun, finishAll } = start();
    submit([0]);
    submit([1]);
    runner.size = 2;
    submit([2]);
    expect(begun()).toEqual([0, 1]);
    expect([dispatcher.running.size, dispatcher.queueSize]).toEqual([2, 1]);
    await finishAll();
    expect(begun()).toEqual([0, 1, 2]);
  });

  it('says how long a call has waited', async () => {
    const { observer, submit, finishAll } = start();
    submit();
    submit();
    await vi.advanceTimersByTimeAsync(300);
    await finishAll();
    expect(observer.waited).toEqual([0, 300]);
    expect(observer.runMs[0]).toBe(300);
  });
});

describe('a full queue', () => {
  it('refuses what comes on top, with when to come back', async () => {
    const task = { ...TASK, queueTimeoutMs: 60_000 };
    const { runner, observer, submit, finishAll } = start({ threads: 2, maxQueue: 10 });
    submit([], { task });
    await vi.advanceTimersByTimeAsync(3_000);
    runner.runs[0]!.complete();
    await settled();
    for (let n = 0; n < 12; n += 1) submit([], { task });
    const refused = submit([], { task });
    await settled();
    // 10 × 3 s on 2 threads.
    expect(refused).toMatchObject(rejection('queue-full', 15));
    expect(refused.error).toBeInstanceOf(TaskRejectedException);
    expect((refused.error as TaskRejectedException).getStatus()).toBe(503);
    expect(observer.outcomes).toEqual(['completed', 'rejected']);
    await finishAll();
  });

  it('may have room for nobody: what cannot begin at once is refused', async () => {
    const { submit, finishAll, dispatcher } = start({ maxQueue: 0 });
    const [runs, refused] = [submit(), submit()];
    await finishAll();
    expect([runs.state, refused.state]).toEqual(['answered', 'refused']);
    expect(refused).toMatchObject(rejection('queue-full'));
    expect(dispatcher.fullForMs).toBe(0);
  });

  it('is known by how long it has been full while calls are refused', async () => {
    const { submit, dispatcher, finishAll } = start({ maxQueue: 1 });
    submit();
    expect(dispatcher.fullForMs).toBe(0);
    submit();
    for (let n = 0; n < 4; n += 1) {
      await vi.advanceTimersByTimeAsync(900);
      submit();
    }
    expect(dispatcher.fullForMs).toBe(3_600);
    await finishAll();
    await vi.advanceTimersByTimeAsync(1_001);
    expect(dispatcher.fullForMs).toBe(0);
  });

  it('is not relieved by a call that gets a thread and leaves its place to the next', async () => {
    const { runner, submit, dispatcher, finishAll } = start({ maxQueue: 1 });
    submit();
    submit();
    for (let n = 0; n < 10; n += 1) {
      await vi.advanceTimersByTimeAsync(500 - 3 * TURN_MS);
      runner.active[0]!.complete();
      await settled();
      submit();
    }
    expect(dispatcher.fullForMs).toBe(5_000);
    await finishAll();
  });
});

describe('a call that waits too long', () => {
  it('is refused and never begins', async () => {
    const task = { ...TASK, queueTimeoutMs: 700 };
    const { observer, submit, begun, finishAll, dispatcher } = start();
    submit(['runs']);
    const waits = submit(['waits'], { task });
    await vi.advanceTimersByTimeAsync(task.queueTimeoutMs - 1);
    expect(waits.state).toBe('waiting');
    await vi.advanceTimersByTimeAsync(1 + TURN_MS);
    expect(waits).toMatchObject(rejection('queue-timeout'));
    expect(dispatcher.queueSize).toBe(0);
    await finishAll();
    expect(begun()).toEqual(['runs']);
    expect(observer.outcomes).toEqual(['queue_timeout', 'completed']);
    expect(observer.waited).toHaveLength(1);
  });

  it('runs where it gets its thread in the moment in which its time is up', async () => {
    const { runner, submit } = start();
    submit();
    const waits = submit();
    setTimeout(() => runner.runs[0]!.complete(), TASK.queueTimeoutMs);
    // Its timer is the older one: it fires first, and what it asks for comes a turn later.
    await vi.advanceTimersByTimeAsync(TASK.queueTimeoutMs + TURN_MS);
    expect(runner.runs).toHaveLength(2);
    runner.runs[1]!.complete('late');
    await settled();
    expect(waits).toMatchObject({ state: 'answered', value: 'late' });
  });

  it('is refused some at a time where many are: the event loop has its turn in between', async () => {
    const { submit, finishAll } = start({ maxQueue: 100 });
    submit();
    const waiting = Array.from({ length: 100 }, () => submit());
    let refusedBefore = -1;
    const look = () =>
      (refusedBefore = waiting.filter(({ client }) => client.watches === 0).length);
    setTimeout(() => setImmediate(look), TASK.queueTimeoutMs);
    await vi.advanceTimersByTimeAsync(TASK.queueTimeoutMs + 10 * TURN_MS);
    expect(refusedBefore).toBeGreaterThan(0);
    expect(refusedBefore).toBeLessThan(100);
    expect(waiting.filter(({ state }) => state === 'refused')).toHaveLength(100);
    await finishAll();
  });
});

describe('a call that runs too long', () => {
  it('is ended and answered with 504: its wait is not counted', async () => {
    const { runner, observer, reports, submit } = start();
    submit();
    const caller = submit();
    await vi.advanceTimersByTimeAsync(4_000);
    runner.runs[0]!.complete();
    await vi.advanceTimersByTimeAsync(TASK.timeoutMs - 1);
    expect([caller.state, runner.runs[1]!.aborted]).toEqual(['waiting', false]);
    await vi.advanceTimersByTimeAsync(1 + TURN_MS);
    expect(runner.runs[1]!.aborted).toBe(true);
    expect(caller.error).toBeInstanceOf(TaskTimeoutException);
    expect(caller.error).toMatchObject({ task: TASK.name, timeoutMs: TASK.timeoutMs });
    expect((caller.error as TaskTimeoutException).getStatus()).toBe(504);
    expect(observer).toMatchObject({
      waited: [0, 4_000],
      runMs: [4_000, TASK.timeoutMs + TURN_MS],
      outcomes: ['completed', 'timeout'],
    });
    // The thread was ended, not lost.
    expect(reports).toEqual([]);
  });
});

describe('a client that goes away', () => {
  it('before it could call, has nothing run for it', async () => {
    const { runner, observer, submit } = start();
    const client = new FakeWaitingClient();
    client.leave();
    const caller = submit([], { client });
    await settled();
    expect(caller.error).toBeInstanceOf(TaskAbortedException);
    expect((caller.error as TaskAbortedException).getStatus()).toBe(499);
    expect(runner.runs).toEqual([]);
    expect(observer.outcomes).toEqual(['aborted']);
  });

  it('while it waits, has nothing run for it, and leaves its place', async () => {
    const { observer, submit, begun, finishAll } = start({ maxQueue: 1 });
    submit([0]);
    const leaves = submit([1]);
    leaves.client.leave();
    submit([2]);
    await settled();
    expect(leaves.error).toBeInstanceOf(TaskAbortedException);
    await finishAll();
    expect(begun()).toEqual([0, 2]);
    expect(observer.outcomes).toEqual(['aborted', 'completed', 'completed']);
  });

  it('while its call runs, has it ended after a grace', async () => {
    const { runner, observer, submit } = start();
    const caller = submit();
    vi.advanceTimersByTime(50);
    caller.client.leave();
    await vi.advanceTimersByTimeAsync(GRACE_MS - 1);
    expect(caller.error).toBeInstanceOf(TaskAbortedException);
    expect(runner.runs[0]!.aborted).toBe(false);
    vi.advanceTimersByTime(1);
    expect(runner.runs[0]!.aborted).toBe(true);
    expect(observer).toMatchObject({ runMs: [50 + GRACE_MS], outcomes: ['aborted'] });
    await settled();
  });

  it('while its call is about to end, has no thread ended for it', async () => {
    const { runner, observer, submit } = start();
    const caller = submit();
    caller.client.leave();
    vi.advanceTimersByTime(GRACE_MS - 1);
    runner.runs[0]!.complete();
    await vi.advanceTimersByTimeAsync(GRACE_MS);
    expect(runner.runs[0]!.aborted).toBe(false);
    expect(observer).toMatchObject({ runMs: [GRACE_MS - 1], outcomes: ['aborted'] });
  });
});

describe('calls that nobody waits for any more', () => {
  const START_MS = 40;

  function abandon(count: number) {
    const started = start({ threads: count });
    started.runner.startMs = START_MS;
    const callers = Array.from({ length: count }, () => started.submit());
    return { ...started, callers, ended: () => started.runner.runs.map(({ aborted }) => aborted) };
  }

  it('are ended one after the other: threads have five times as long as it takes to start one', async () => {
    const { callers, ended } = abandon(3);
    for (const { client } of callers) client.leave();
    await vi.advanceTimersByTimeAsync(GRACE_MS);
    expect(ended()).toEqual([true, false, false]);
    await vi.advanceTimersByTimeAsync(5 * START_MS - 1);
    expect(ended()).toEqual([true, false, false]);
    await vi.advanceTimersByTimeAsync(1);
    expect(ended()).toEqual([true, true, false]);
    await vi.advanceTimersByTimeAsync(5 * START_MS);
    expect(ended()).toEqual([true, true, true]);
  });

  it('are ended when their own time is up all the same', async () => {
    const { callers, ended } = abandon(200);
    for (const { client } of callers) client.leave();
    await vi.advanceTimersByTimeAsync(TASK.timeoutMs);
    expect(ended()).toEqual(callers.map(() => true));
  });

  it('are not put off by those that have ended by themselves: those cost no thread', async () => {
    const { runner, submit } = start();
    runner.startMs = START_MS;
    for (let i = 0; i < 20; i += 1) {
      const brief = submit();
      brief.client.leave();
      runner.active[0]!.complete();
      await settled();
    }
    const long = submit();
    long.client.leave();
    await vi.advanceTimersByTimeAsync(GRACE_MS + 5 * START_MS);
    expect(runner.runs.at(-1)!.aborted).toBe(true);
  });
});

describe('arguments of a call that waits', () => {
  it('are those that it was called with, whatever the caller does with them meanwhile', async () => {
    const { runner, submit } = start();
    submit();
    const rows = [1];
    const context = { id: 7 };
    submit([rows, Buffer.from('x')], { contexts: { request: context } });
    rows.push(2);
    context.id = 8;
    runner.runs[0]!.complete();
    await settled();
    const { args, contexts } = runner.runs[1]!.request;
    expect(args).toEqual([[1], Buffer.from('x')]);
    expect(Buffer.isBuffer(args[1])).toBe(true);
    expect(contexts).toEqual({ request: { id: 7 } });
    runner.runs[1]!.complete();
    await settled();
  });

  it('are refused at once where they cannot be copied, and named', async () => {
    const { observer, submit, finishAll, dispatcher } = start();
    submit();
    const caller = submit([1, { f: () => 1 }]);
    await settled();
    expect(caller.error).toBeInstanceOf(ClusterUncloneableError);
    expect((caller.error as Error).message).toContain('argument 2 (second).f is a function');
    expect(dispatcher.queueSize).toBe(0);
    await finishAll();
    expect(observer.outcomes).toEqual(['failed', 'completed']);
  });

  it('are moved where they are to be', async () => {
    const { runner, submit, finishAll } = start();
    submit();
    const bytes = move(new Uint8Array([1, 2]));
    submit([bytes]);
    expect(bytes.byteLength).toBe(0);
    runner.runs[0]!.complete();
    await settled();
    expect(runner.runs[1]!.request.args).toEqual([new Uint8Array([1, 2])]);
    await finishAll();
  });

  it.each([
    ['there is no room', () => {}],
    ['this process is ending', (dispatcher: Dispatcher) => dispatcher.close()],
  ])('are left alone where %s: nothing is copied or moved for a refusal', async (_, prepare) => {
    const { dispatcher, submit, finishAll } = start({ maxQueue: 0 });
    submit();
    prepare(dispatcher);
    const bytes = move(new Uint8Array([1, 2]));
    let reads = 0;
    const watched = Object.defineProperty({}, 'big', { enumerable: true, get: () => (reads += 1) });
    const refused = submit([bytes, watched]);
    await settled();
    expect(refused.error).toBeInstanceOf(TaskRejectedException);
    expect([bytes.byteLength, reads]).toEqual([2, 0]);
    await finishAll();
  });
});

it('whether there is a call from before is known of those that run, and of those that wait', async () => {
  const { runner, dispatcher, submit } = start();
  await vi.advanceTimersByTimeAsync(100);
  const from = performance.now();
  expect(dispatcher.hasCallFrom(from + 1)).toBe(false);
  submit();
  await vi.advanceTimersByTimeAsync(100);
  submit();
  expect([from, from + 1].map((at) => dispatcher.hasCallFrom(at))).toEqual([false, true]);
  // The older call ends, and the younger one waits for a thread.
  runner.spare = 1;
  runner.runs[0]!.complete();
  await settled();
  expect([from + 100, from + 101].map((at) => dispatcher.hasCallFrom(at))).toEqual([false, true]);
  runner.spare = 0;
  dispatcher.pump();
  runner.runs[1]!.complete();
  await settled();
  expect(dispatcher.hasCallFrom(Infinity)).toBe(false);
});

describe('a thread that is lost', () => {
  it.each([
    ['a full heap', Object.assign(new Error('heap'), { code: 'ERR_WORKER_OUT_OF_MEMORY' })],
    ['a RangeError that is not about the arguments', new RangeError('Maximum call stack size')],
    ['nothing that could be told', undefined],
  ])('by %s is told of, and its call is a 500 with the cause', async (_, cause) => {
    const { runner, observer, submit, reports } = start();
    const caller = submit([{ a: 1 }]);
    runner.runs[0]!.lose(cause);
    await settled();
    expect(caller.error).toBeInstanceOf(ThreadLostException);
    expect((caller.error as ThreadLostException).getStatus()).toBe(500);
    expect(caller.error).toMatchObject({ task: TASK.name, cause });
    expect(observer).toMatchObject({ runMs: [0], outcomes: ['thread_lost'] });
    expect(reports).toEqual([['Cats.count', cause]]);
  });
});

describe('where there is no thread', () => {
  it('calls are refused at once', async () => {
    const { observer, submit, runner } = start({ threads: 0 });
    const caller = submit();
    await settled();
    expect(caller).toMatchObject(rejection('unavailable'));
    expect(runner.runs).toEqual([]);
    expect(observer.outcomes).toEqual(['rejected']);
  });

  it('calls are refused that have been waiting', async () => {
    const { runner, submit, dispatcher } = start();
    const [runs, waits] = [submit(), submit()];
    runner.size = 0;
    runner.runs[0]!.lose(new Error('x'));
    await settled();
    expect(runs.error).toBeInstanceOf(ThreadLostException);
    expect(waits).toMatchObject(rejection('unavailable'));
    dispatcher.pump();
    runner.size = 1;
    const later = submit();
    runner.runs[1]!.complete();
    await settled();
    expect(later.state).toBe('answered');
  });
});

describe('a runner that throws', () => {
  it('fails the call alone, at once, and what waits goes on', async () => {
    const { runner, observer, submit, finishAll, dispatcher } = start();
    const boom = new Error('a getter threw');
    const throwOnce = () => {
      runner.onRun = () => {};
      runner.runs.pop()!.over = true;
      throw boom;
    };
    runner.onRun = throwOnce;
    const first = submit([0]);
    await settled();
    expect([first.state, dispatcher.running.size]).toEqual(['refused', 0]);
    const [runs, waits, behind] = [submit([1]), submit([2]), submit([3])];
    runner.onRun = throwOnce;
    runner.runs[0]!.complete();
    await settled();
    await finishAll();
    expect([runs.state, waits.state, behind.state]).toEqual(['answered', 'refused', 'answered']);
    expect(observer.outcomes).toHaveLength(4);
  });
});

describe('close()', () => {
  it('refuses what waits and what comes, ends what runs, and begins nothing in its place', async () => {
    const { runner, observer, submit, dispatcher } = start({ threads: 2 });
    const [a, b, waits] = [submit(), submit(), submit()];
    b.client.leave(); // nobody waits for its call any more
    dispatcher.close();
    dispatcher.close();
    const late = submit();
    await settled();
    dispatcher.pump();
    expect(runner.runs.map(({ aborted }) => aborted)).toEqual([true, true]);
    expect(a.error).toBeInstanceOf(TaskAbortedException);
    expect(waits).toMatchObject(rejection('closing'));
    expect(late).toMatchObject(rejection('closing'));
    expect(observer.outcomes).toEqual(['aborted', 'rejected', 'aborted', 'rejected']);
  });
});
