import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Dispatcher } from '../../../../src/offload/admission/dispatcher.js';
import type { Task } from '../../../../src/offload/task/task.js';
import {
  FakeObserver,
  type FakeRun,
  FakeRunner,
  FakeWaitingClient,
  TASK,
} from '../../support/fake-runner.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const OPERATIONS = 1_000;
const MAX_QUEUE = 5;
const MOST_THREADS = 4;
const LIMITS = { timeoutMs: 60, queueTimeoutMs: 25 };
const LIMITED: Task = { ...TASK, ...LIMITS };

interface Caller {
  readonly number: number;
  readonly client: FakeWaitingClient;
  readonly args: unknown[];
  settled: boolean;
  value?: unknown;
}

/** mulberry32: the same numbers in every run of one seed. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

/** Does what comes, and notes whatever must not come about. */
class Trial {
  readonly runner = new FakeRunner(2);
  readonly observer = new FakeObserver();
  readonly callers: Caller[] = [];
  readonly faults: string[] = [];
  readonly dispatcher = new Dispatcher(this.runner, MAX_QUEUE, this.observer, () => {});
  readonly #random: (below: number) => number;
  /** The greatest number of a caller whose call has begun. */
  #latest = -1;

  constructor(seed: number, endsAtOnce: boolean) {
    this.#random = randomFrom(seed);
    this.runner.endsAtOnce = endsAtOnce;
    this.runner.onRun = (run) => this.#onRun(run);
  }

  async step(): Promise<void> {
    const what = this.#random(20);
    if (what < 8) this.#submit();
    else if (what < 12) this.#endSomeRun();
    else if (what < 14) this.#one(this.callers.filter(({ settled }) => !settled))?.client.leave();
    else if (what < 15) this.#resize();
    else vi.advanceTimersByTime(this.#random(30));
    await turn();
    this.check();
  }

  check(): void {
    const { queueSize, running } = this.dispatcher;
    const { size, idle, active } = this.runner;
    const abandoned = active.filter(({ aborted }) => aborted).length;
    if (queueSize > MAX_QUEUE) this.faults.push(`${queueSize} wait`);
    if (running.size !== active.length - abandoned) {
      this.faults.push(`${running.size} count as running of ${active.length}`);
    }
    if (queueSize > 0 && (idle > 0 || size === 0)) {
      this.faults.push(`${queueSize} wait and ${idle} of ${size} threads are free`);
    }
    const settled = this.callers.filter((caller) => caller.settled).length;
    if (this.observer.outcomes.length !== settled) {
      this.faults.push(`${this.observer.outcomes.length} counted, ${settled} told`);
    }
  }

  async finish(): Promise<void> {
    while (this.runner.active.length > 0) {
      for (const run of this.runner.active) run.complete(structuredClone(run.request.args));
      await turn();
    }
    this.dispatcher.close();
    for (const run of this.runner.active) run.lose(new Error('terminated'));
    await turn();
    // Lets calls be refused whose refusal was put off by a turn of the event loop.
    vi.advanceTimersByTime(10);
  }

  #submit(): void {
    const number = this.callers.length;
    const args = [{ number }];
    const client = new FakeWaitingClient();
    if (this.#random(10) === 0) client.leave();
    const caller: Caller = { number, client, args, settled: false };
    this.callers.push(caller);
    const settle = (value?: unknown) => {
      if (caller.settled) this.faults.push(`caller ${number} was told twice`);
      caller.settled = true;
      caller.value = value;
    };
    this.dispatcher.submit(LIMITED, args, { made: { number } }, client.watch).then(
      (value) => {
        settle(value);
        if (JSON.stringify(value) !== JSON.stringify(args)) this.faults.push('a wrong answer');
      },
      () => settle(),
    );
  }

  #onRun({ request }: Pick<FakeRun, 'request'>): void {
    if (this.runner.active.length > this.runner.size) this.faults.push('more run than can');
    const { number } = request.contexts!['made'] as { number: number };
    const made = this.callers[number]!;
    if (number < this.#latest) this.faults.push(`${number} was overtaken by ${this.#latest}`);
    this.#latest = number;
    if (made.client.gone || made.settled) this.faults.push(`${number} runs for nobody`);
  }

  #endSomeRun(): void {
    const run = this.#one(this.runner.active);
    switch (this.#random(5)) {
      case 0:
        return run?.fail(new Error('x'));
      case 1:
        return run?.lose(new Error('x'));
      default:
        return run?.complete(structuredClone(run.request.args));
    }
  }

  /** Never below what runs: who takes a thread away ends its call. */
  #resize(): void {
    this.runner.size = Math.max(this.#random(MOST_THREADS + 1), this.runner.active.length);
    this.dispatcher.pump();
  }

  #one<T>(list: readonly T[]): T | undefined {
    return list[this.#random(Math.max(1, list.length))];
  }
}

/** Resolves once all due promise callbacks and turns of the event loop have run. */
async function turn(): Promise<void> {
  for (let turns = 0; turns < 3; turns += 1) {
    for (let i = 0; i < 8; i += 1) await Promise.resolve();
    // With fake timers a turn takes a millisecond.
    vi.advanceTimersByTime(1);
  }
  for (let i = 0; i < 8; i += 1) await Promise.resolve();
}

describe.each([
  ['that can be ended', true],
  ['that cannot be ended', false],
])('whatever comes about with calls %s', (_, endsAtOnce) => {
  it.each([1, 2, 3, 4, 5, 6])(
    'nobody is forgotten, told twice, overtaken or served when gone, and no thread idles (seed %d)',
    async (seed) => {
      const trial = new Trial(seed, endsAtOnce);
      for (let i = 0; i < OPERATIONS; i += 1) {
        await trial.step();
        expect(trial.faults).toEqual([]);
      }
      await trial.finish();
      trial.check();
      expect(trial.faults).toEqual([]);
      const { callers, dispatcher, observer } = trial;
      expect(callers.filter(({ settled }) => !settled)).toEqual([]);
      expect(callers.reduce((sum, { client }) => sum + client.watches, 0)).toBe(0);
      expect([dispatcher.running.size, dispatcher.queueSize, vi.getTimerCount()]).toEqual([
        0, 0, 0,
      ]);
      expect(observer.runMs).toHaveLength(observer.waited.length);
      // Not a trial in which nothing happens.
      const outcomes = new Set(observer.outcomes);
      expect([...outcomes].sort()).toEqual([
        'aborted',
        'completed',
        'failed',
        'queue_timeout',
        'rejected',
        'thread_lost',
        'timeout',
      ]);
    },
  );
});
