import { of } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AutoRunner } from '../../../../src/offload/admission/auto-runner.js';
import { Dispatcher } from '../../../../src/offload/admission/dispatcher.js';
import type { Task } from '../../../../src/offload/task/task.js';
import { FakeObserver, FakeRunner, TASK } from '../../support/fake-runner.js';

const AUTO: Task = { ...TASK, mode: 'auto' };
const OTHER: Task = { ...TASK, name: 'Cats.weigh', index: 1 };

let threads: FakeRunner;
let runner: AutoRunner;
let dispatcher: Dispatcher;
/** Names of the tasks that ran on the event loop. */
let inlined: string[];
/** The method, on the app's instance. */
let body: (...args: unknown[]) => unknown;

beforeEach(() => {
  threads = new FakeRunner(1);
  inlined = [];
  body = () => 'event loop';
  runner = new AutoRunner(
    threads,
    [AUTO, OTHER],
    (_task, args) => body(...args),
    ({ name }) => inlined.push(name),
  );
  dispatcher = new Dispatcher(runner, 100, new FakeObserver(), () => {});
});

afterEach(() => dispatcher.close());

function call(task = AUTO, ...args: unknown[]): Promise<unknown> {
  const called = dispatcher.submit(task, args, undefined);
  called.catch(() => {}); // a test may leave it running
  return called;
}

/** The thread has run the call in `ms`. */
function complete(ms: number): void {
  threads.active[0]!.complete('thread', { elapsed: { ms, cpuMs: ms } });
}

/** Makes calls that are short, until the next one is to run on the event loop. */
async function learn(task = AUTO): Promise<void> {
  for (let made = 0; made < 30 && runner.inlineFor(task) === undefined; made += 1) {
    const called = call(task);
    complete(-1); // so that a hop takes more than 1 ms
    await called;
  }
}

/** Blocks the event loop for this CPU time. */
function compute(ms: number): void {
  const begun = process.cpuUsage();
  const begunAt = performance.now();
  // Other threads of the process have CPU time too, so the CPU time alone may be over too soon.
  for (let took = 0; took < ms * 1_000 || performance.now() - begunAt < ms;) {
    const { user, system } = process.cpuUsage(begun);
    took = user + system;
  }
}

describe("a method with mode: 'auto'", () => {
  it('runs in a thread first, and on the event loop once it is known to be short', async () => {
    const first = call();
    complete(-1);
    expect(await first).toBe('thread');
    await learn();
    expect(await call()).toBe('event loop');
    expect(inlined).toEqual(['Cats.count']);
  });

  it('stays in a thread if its calls are long', async () => {
    for (let made = 0; made < 100; made += 1) {
      const called = call();
      complete(5);
      expect(await called).toBe('thread');
    }
  });

  it('stays in a thread if its calls take longer than the hop, which is the rest of their time', async () => {
    for (let made = 0; made < 50; made += 1) {
      const called = call();
      compute(0.95);
      complete(0.95);
      await called;
    }
    expect(runner.inlineFor(AUTO)).toBeUndefined();
  });

  it('leaves other methods in threads', async () => {
    await learn(OTHER);
    expect(runner.inlineFor(OTHER)).toBeUndefined();
    await learn();
    void call(OTHER);
    expect(threads.active).toHaveLength(1);
  });

  it('gets copies of its arguments on the event loop too', async () => {
    await learn();
    body = (list) => (list as number[]).push(2);
    const given = [1];
    expect(await call(AUTO, given)).toBe(2);
    expect(given).toEqual([1]);
  });

  it('needs no thread, and passes calls that wait for one', async () => {
    await learn();
    const running = call(OTHER);
    const waiting = call(OTHER);
    expect(await call()).toBe('event loop');
    expect([threads.active.length, dispatcher.queueSize]).toEqual([1, 1]);
    complete(1);
    expect(await running).toBe('thread');
    dispatcher.pump();
    complete(1);
    expect(await waiting).toBe('thread');
  });

  it('has calls that wait already run in the thread, not all at once on the event loop', async () => {
    const calls = Array.from({ length: 30 }, () => call());
    for (let made = 0; made < 20; made += 1) {
      complete(-1);
      await new Promise(setImmediate);
    }
    expect(runner.inlineFor(AUTO)).toBeDefined();
    for (let made = 0; made < 10; made += 1) {
      complete(-1);
      await new Promise(setImmediate);
    }
    expect(new Set(await Promise.all(calls))).toEqual(new Set(['thread']));
    expect(inlined).toEqual([]);
  });

  it('is back in a thread at once after a long call, also within one turn', async () => {
    await learn();
    body = () => compute(10);
    void call();
    expect(runner.inlineFor(AUTO)).toBeUndefined();
  });

  it.each([
    [
      'throws',
      () => {
        compute(10);
        throw new RangeError('x');
      },
    ],
    [
      'rejects',
      async () => {
        compute(10);
        throw new RangeError('x');
      },
    ],
  ])('is measured where it %s', async (_, failing) => {
    await learn();
    body = failing;
    await expect(call()).rejects.toThrow('x');
    expect(runner.inlineFor(AUTO)).toBeUndefined();
  });

  it('may be async', async () => {
    await learn();
    body = async () => 5;
    expect(await call()).toBe(5);
    await new Promise(setImmediate);
    expect(runner.inlineFor(AUTO)).toBeDefined();
  });

  it.each([
    ['awaits something', () => new Promise((resolve) => setImmediate(resolve, 5))],
    ['returns an Observable', () => of(5)],
    ['returns a promise of an Observable', async () => of(5)],
  ])('is back in a thread if it %s: what follows cannot be measured', async (_, later) => {
    await learn();
    body = later;
    expect(await call()).toBe(5);
    expect(runner.inlineFor(AUTO)).toBeUndefined();
  });

  it('is back in a thread, for long, if a call has ended its thread', async () => {
    const lost = call();
    threads.active[0]!.lose(new Error('exit 1'));
    await expect(lost).rejects.toThrow();
    await learn();
    expect(runner.inlineFor(AUTO)).toBeUndefined();
  });

  it('is not sent ahead to a busy thread, whose wait would count as its hop', () => {
    threads.takesOffers = true;
    void call(OTHER);
    void call();
    expect(threads.active[0]!.next).toBeUndefined();
    void call(OTHER);
    expect(dispatcher.queueSize).toBe(2);
  });

  it('leaves the closing to both places', async () => {
    await runner.close();
    expect(threads.closed).toBe(true);
  });
});
