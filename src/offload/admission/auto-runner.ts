import type { Offer, OfferEvents, Run, Runner, RunRequest } from '../task/runner.interface.js';
import { Stopwatch } from '../task/stopwatch.js';
import type { Task } from '../task/task.js';
import { InlineRunner } from './inline-runner.js';
import { ModePolicy } from './mode.policy.js';

const PENDING = Promise.resolve(Symbol('pending'));

/** Runs calls in threads. Calls of methods with `mode: 'auto'` run on the event loop while that costs less. */
export class AutoRunner implements Runner {
  readonly #inline: InlineRunner;
  readonly #stopwatch = new Stopwatch();
  /** The policies of the methods with `mode: 'auto'`, by the index of the task. */
  readonly #policies = new Map<number, ModePolicy>();

  /**
   * @param call calls the method of a task on the app's instance.
   * @param inlined is called before each call on the event loop, with its task.
   */
  constructor(
    private readonly threadPool: Runner,
    private readonly tasks: readonly Task[],
    private readonly call: (task: number, args: unknown[]) => unknown,
    private readonly inlined: (task: Task) => void,
  ) {
    for (const { mode, index } of tasks) {
      if (mode === 'auto') this.#policies.set(index, new ModePolicy());
    }
    this.#inline = new InlineRunner(Infinity, (task, args) => this.#callInline(task, args), tasks);
  }

  get size(): number {
    return this.threadPool.size;
  }

  get threads(): number {
    return this.threadPool.threads;
  }

  get spare(): number {
    return this.threadPool.spare;
  }

  get startMs(): number {
    return this.threadPool.startMs;
  }

  get idle(): number {
    return this.threadPool.idle;
  }

  get isInside(): boolean {
    return this.#inline.isInside;
  }

  expect(waiting: number): void {
    this.threadPool.expect(waiting);
  }

  inlineFor({ index }: Task): Pick<Runner, 'run'> | undefined {
    return this.#policies.get(index)?.isInline ? this.#inline : undefined;
  }

  run(request: RunRequest): Run {
    const policy = this.#policies.get(request.task);
    if (policy === undefined) return this.threadPool.run(request);
    const startedAt = performance.now();
    const run = this.threadPool.run({ ...request, timed: true });
    run.result.then(
      ({ elapsed }) => {
        if (elapsed === undefined) return;
        policy.ranInThread(elapsed, performance.now() - startedAt - elapsed.ms);
      },
      // The call has ended its thread or ran for too long. It must not do that to the event loop.
      () => policy.refuse(),
    );
    return run;
  }

  /**
   * Methods with `mode: 'auto'` are not sent ahead, because the hop of such a call cannot be told
   * from its wait. It is short calls that gain from it, and these run on the event loop.
   */
  offer(request: RunRequest, events: OfferEvents): Offer | undefined {
    if (this.#policies.has(request.task)) return undefined;
    return this.threadPool.offer(request, events);
  }

  async close(): Promise<void> {
    await Promise.all([this.threadPool.close(), this.#inline.close()]);
  }

  /** The time is known as soon as the method returns, so that further calls in this turn heed it. */
  #callInline(task: number, args: unknown[]): unknown {
    const policy = this.#policies.get(task)!;
    const elapsed = this.#stopwatch.start();
    try {
      const value = this.call(task, args);
      if (typeof value === 'object' && value !== null) void this.#watch(value, policy);
      return value;
    } finally {
      policy.ranInline(elapsed());
      this.inlined(this.tasks[task]!);
    }
  }

  /** Nobody can tell how long a method that goes on after it has returned will block the event loop. */
  async #watch(value: object, policy: ModePolicy): Promise<void> {
    // A promise that has settled wins the race. If it has failed, the caller gets the error.
    const ended = Promise.resolve<unknown>(value);
    const first = await Promise.race([ended, PENDING]).catch(() => undefined);
    if (first === (await PENDING) || typeof (first as Subscribable)?.subscribe === 'function') {
      policy.refuse();
    }
  }
}

interface Subscribable {
  readonly subscribe?: unknown;
}
