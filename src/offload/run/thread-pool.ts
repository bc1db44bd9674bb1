import { existsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { Piscina } from 'piscina';
import { compileCacheDirectory } from '../../contract/process/compile-cache.js';
import { besideThis, LEAVE_OUT_OF_BUNDLE } from '../../contract/process/own-file.js';
import {
  TaskAbortedException,
  TaskRejectedException,
  TaskTimeoutException,
  ThreadLostException,
} from '../offload.exceptions.js';
import { classAt } from '../task/exported-classes.js';
import { buffersIn, cloneOf, resultOf, type RunResult } from '../task/run-body.js';
import type { TraceHeaders } from '../task/trace-context.js';
import { describeProblems, type Problem } from '../thread/problem.js';
import type {
  SentResult,
  ThreadMessage,
  ThreadPlan,
  ThreadSettings,
} from '../thread/thread-host.js';
import type { Call, Calls } from './calls.js';
import type { Runner, Task, TaskOutcome, Watch } from './runner.interface.js';

const THREAD_PROGRAM = besideThis('dist/programs/offload-thread.js') ?? 'offload-thread.js';

/** Why threads cannot start. Empty if their program exists. */
export function missingThreadProgram(): string[] {
  return existsSync(THREAD_PROGRAM)
    ? []
    : [`${LEAVE_OUT_OF_BUNDLE}, or set CLUSTER_OFFLOAD=inline`];
}

/** Threads are terminated after this long without a call. */
const IDLE_MS = 60_000;

/** Timeout for closing the modules in threads, then for terminating the threads. Native code can delay both. */
const CLOSE_MS = 1_000;

/** `Piscina.queueOptionsSymbol`. Piscina passes this property to the load balancer, not to the thread. */
const QUEUE_OPTIONS = Symbol.for('Piscina.queueOptions');

interface Posted {
  readonly [QUEUE_OPTIONS]: Call | null | undefined;
}

interface PoolOptions {
  /** Maximum number of threads. */
  readonly threads: number;
  /** Number of threads that keep running while idle. */
  readonly minThreads: number;
  /** Maximum number of calls that wait while all threads are busy. */
  readonly maxQueue: number;
}

interface PoolEvents {
  /** The thread of a running call has died. */
  lost(task: Task, error: unknown): void;
  /** A thread that ran no call has died. */
  died(error: unknown): void;
  /** A result was a class instance, which arrives as a plain object. */
  lostClass(task: Task, className: string): void;
}

/** Runs calls in the threads of a Piscina pool, in the order they were made. */
export class ThreadPool implements Runner {
  /** The calls that were submitted to Piscina, at most one per thread. */
  readonly #turns = new Set<Call>();
  /** The calls that wait for a thread, the oldest first. */
  readonly #waiting = new Set<Call>();
  #piscina: Promise<Piscina> | undefined;
  #threads: () => number = () => 0;
  #idle: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(
    private readonly plan: ThreadPlan,
    private readonly options: PoolOptions,
    private readonly calls: Calls,
    private readonly events: PoolEvents,
  ) {}

  get threads(): number {
    return this.#threads();
  }

  /** Loads all tasks in a separate thread, which is then terminated. @returns messages about the problems. */
  async check(): Promise<readonly string[]> {
    // If the thread exits while loading, Piscina rejects the call only with minThreads = 1.
    const piscina = await this.#create(1, 1);
    try {
      return describeProblems((await post(piscina, { type: 'check' })) as Problem[]);
    } catch (error) {
      const files = [...new Set(this.plan.tasks.map(({ file }) => file))].join(', ');
      return [
        `a thread exited while loading ${files} (${String(error)}); remove process.exit() from the code that runs on import`,
      ];
    } finally {
      await end(piscina);
    }
  }

  /** Starts `minThreads` threads. */
  keep(): void {
    if (this.options.minThreads > 0 && !this.#closed) void this.#open();
  }

  async submit(
    task: Task,
    args: readonly unknown[],
    trace: TraceHeaders | undefined,
    watch: Watch = () => () => {},
  ): Promise<unknown> {
    const call = this.calls.add(task);
    const unwatch = watch(() => {
      if (call.startedAt === undefined || task.abortOnDisconnect) {
        call.end('aborted', new TaskAbortedException(task.name));
      }
    });
    let outcome: TaskOutcome = 'failed';
    try {
      this.#admit(call);
      await this.#turn(call);
      if (call.ended !== undefined) throw call.ended.error;
      const result = await this.#run(call, { args, trace });
      if (result.ok) outcome = 'completed';
      return resultOf(result);
    } catch (error) {
      if (call.ended === undefined) throw error;
      outcome = call.ended.outcome;
      throw call.ended.error;
    } finally {
      unwatch();
      this.#next(call);
      this.calls.remove(call, outcome);
      this.#rest();
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#idle);
    for (const call of this.calls) {
      if (call.startedAt === undefined) this.#reject(call, 'closing');
      else call.end('aborted', new TaskAbortedException(call.task.name));
    }
    await this.#end();
  }

  #admit(call: Call): void {
    clearTimeout(this.#idle);
    const { threads, maxQueue } = this.options;
    if (this.#closed) this.#reject(call, 'closing');
    if (this.calls.size > threads + maxQueue) this.#reject(call, 'queue-full');
    const { queueTimeoutMs } = call.task;
    call.timer = setTimeout(() => this.#reject(call, 'queue-timeout'), queueTimeoutMs);
  }

  #reject(call: Call, reason: 'closing' | 'queue-full' | 'queue-timeout'): void {
    const outcome = reason === 'queue-timeout' ? 'queue_timeout' : 'rejected';
    call.end(outcome, new TaskRejectedException(call.task.name, reason));
  }

  /**
   * Resolves when the call may be submitted to Piscina, or has ended. Piscina never gets more calls
   * than there are threads: calls with a signal would wait in an unordered list that its maxQueue
   * does not limit (5.3, `_returnUndistributedTask()`).
   */
  async #turn(call: Call): Promise<void> {
    if (call.ended !== undefined) return;
    if (this.#turns.size < this.options.threads) {
      this.#turns.add(call);
      return;
    }
    await new Promise<void>((resolve) => {
      this.#waiting.add(call);
      call.stop = resolve;
    });
  }

  /** Called when a call has ended. The oldest waiting call takes its place. */
  #next(call: Call): void {
    this.#waiting.delete(call);
    if (!this.#turns.delete(call)) return;
    const [next] = this.#waiting;
    if (next === undefined) return;
    this.#waiting.delete(next);
    this.#turns.add(next);
    next.stop();
  }

  async #run(
    call: Call,
    given: { args: readonly unknown[]; trace: TraceHeaders | undefined },
  ): Promise<RunResult> {
    const piscina = await this.#open();
    if (call.ended !== undefined) throw call.ended.error;
    const controller = new AbortController();
    call.stop = () => controller.abort();
    try {
      const { index } = call.task;
      const message = {
        type: 'run',
        task: index,
        ...given,
        buffers: buffersIn(given.args),
      } as const;
      const sent = { call, signal: controller.signal };
      const result = (await post(piscina, message, sent)) as SentResult;
      if (result.ok && result.className) this.events.lostClass(call.task, result.className);
      if (result.ok || result.place === undefined) return result;
      return { ...result, type: await classAt(result.place) };
    } catch (error) {
      if (call.ended === undefined) call.ended = this.#failure(call.task, given, error);
      throw error;
    }
  }

  /** Errors of the task arrive as results, so this error comes from the arguments or the thread. */
  #failure(task: Task, given: object, error: unknown): NonNullable<Call['ended']> {
    try {
      cloneOf(task.name, given);
    } catch (refusal) {
      return { outcome: 'failed', error: refusal };
    }
    this.events.lost(task, error);
    return { outcome: 'thread_lost', error: new ThreadLostException(task.name, error) };
  }

  #begin(call: Call): void {
    clearTimeout(call.timer);
    const { name, timeoutMs } = call.task;
    this.calls.begin(call);
    call.timer = setTimeout(() => {
      // If the event loop was blocked, the result may have arrived. setImmediate() lets it be read first.
      setImmediate(() => call.end('timeout', new TaskTimeoutException(name, timeoutMs)));
    }, timeoutMs);
  }

  #open(): Promise<Piscina> {
    const { minThreads, threads } = this.options;
    return (this.#piscina ??= this.#create(minThreads, threads).then((piscina) => {
      this.#threads = () => piscina.threads.length;
      return piscina;
    }));
  }

  async #create(minThreads: number, maxThreads: number): Promise<Piscina> {
    // Loaded with the first thread, because it needs about 8 MB.
    const { Piscina } = await import('piscina');
    // Piscina also offers threads that are still loading. The loading would count as the call's run time.
    const loaded = new Set<number>();
    const piscina = new Piscina({
      filename: THREAD_PROGRAM,
      name: 'handle',
      minThreads,
      maxThreads,
      // Piscina would terminate idle threads without closing their modules. See #rest().
      idleTimeout: Infinity,
      // Atomics.wait() would block async work of tasks and of their module.
      atomics: 'disabled',
      recordTiming: false,
      // Only the load balancer sees when a call starts.
      loadBalancer: (task, workers) => {
        const idle = workers.find(({ id, currentUsage }) => currentUsage === 0 && loaded.has(id));
        const call = (task as unknown as Posted)[QUEUE_OPTIONS];
        if (idle !== undefined && call) this.#begin(call);
        return idle ?? null;
      },
      workerData: {
        plan: this.plan,
        compileCache: compileCacheDirectory(),
      } satisfies ThreadSettings,
      // Node runs the `--import` modules in each thread, but the OpenTelemetry SDK must not start twice.
      env: { OTEL_SDK_DISABLED: 'true', ...process.env },
    });
    piscina.on('workerCreate', ({ id }: { readonly id: number }) => loaded.add(id));
    piscina.on('workerDestroy', ({ id }: { readonly id: number }) => loaded.delete(id));
    piscina.on('error', (error: unknown) => {
      if (!this.#closed) this.events.died(error);
    });
    return piscina;
  }

  /** Starts the idle timer. When it fires, all threads are terminated, and `minThreads` new ones start. */
  #rest(): void {
    if (this.calls.size > 0 || this.#closed) return;
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => {
      if (this.#threads() <= this.options.minThreads) return;
      void this.#end();
      this.keep();
    }, IDLE_MS).unref();
  }

  async #end(): Promise<void> {
    const opened = this.#piscina;
    this.#piscina = undefined;
    this.#threads = () => 0;
    if (opened !== undefined) await end(await opened);
  }
}

function post(
  piscina: Piscina,
  message: ThreadMessage,
  { call, signal }: { call?: Call; signal?: AbortSignal } = {},
): Promise<unknown> {
  return piscina.run({ ...message, [QUEUE_OPTIONS]: call }, signal && { signal });
}

/** Closes the modules in the threads, then terminates the threads. */
async function end(piscina: Piscina): Promise<void> {
  // A busy thread gets no second message, so each thread gets exactly one.
  const closed = Promise.all(piscina.threads.map(() => post(piscina, { type: 'close' })));
  const limit = (): Promise<void> => delay(CLOSE_MS, undefined, { ref: false });
  await Promise.race([closed.catch(() => {}), limit()]);
  await Promise.race([piscina.destroy(), limit()]);
}
