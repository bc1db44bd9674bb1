import { EventEmitter, once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Worker } from 'node:worker_threads';
import { Piscina } from 'piscina';
import { contentsOf } from './parcel.js';
import type { Run, Runner, RunRequest, RunResult } from './runner.interface.js';
import type { ThreadPlan } from './thread/plan.js';
import type { ThreadMessage } from './thread/thread-host.js';

/** A thread in JavaScript ends at once when it is told to; one in native code only when that returns. */
const END_MS = 5_000;

/** For `offload.module` to close, and for all threads to end, when the pool is closed. */
const CLOSE_MS = 1_000;

/** Wait before threads that did not start are tried again; each further time twice as long. */
const RETRY_MS = 1_000;
const MAX_RETRY_MS = 30_000;

/** `terminate()` is asked for with a signal; an emitter will do, and costs less than an AbortController. */
class AbortSwitch extends EventEmitter {
  aborted = false;

  abort(): void {
    this.aborted = true;
    this.emit('abort');
  }
}

/** What is told of a pool. */
export interface ThreadPoolEvents {
  /** There may be more capacity, or none to come. */
  changed(): void;
  /** Something an operator should know; one line. */
  warning(message: string): void;
  /** A thread does not end: native code holds it. */
  stuck(): void;
}

export interface ThreadPoolOptions {
  readonly threads: number;
  readonly niceIncrement: number;
  /** `Infinity` = Node's own limit. */
  readonly heapLimitBytes: number;
}

/**
 * Threads of one size, always as many, each with one call at a time: piscina's
 * pool, with a watch over what it leaves to its user.
 */
export class ThreadPool implements Runner {
  #pool: Piscina;
  #retryMs = RETRY_MS;
  #retry: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(
    private readonly plan: ThreadPlan,
    private readonly options: ThreadPoolOptions,
    private readonly events: ThreadPoolEvents,
  ) {
    this.#pool = this.#open();
  }

  get size(): number {
    return this.#pool.threads.length;
  }

  get idle(): number {
    return this.#pool.idleThreads;
  }

  /** What stands in the way of running the plan; empty where nothing does. */
  async check(): Promise<readonly string[]> {
    return (await this.#pool.run({ type: 'check' } satisfies ThreadMessage)) as readonly string[];
  }

  run(request: RunRequest): Run {
    const { moved, buffers } = contentsOf(request.args);
    const message: ThreadMessage = { type: 'run', ...request, buffers };
    const signal = new AbortSwitch();
    const pool = this.#pool;
    const result = pool.run(message, { signal, transferList: moved }) as Promise<RunResult>;
    return { result, abort: () => this.#watchEnds(pool, () => signal.abort()) };
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#retry);
    const pool = this.#pool;
    if (this.plan.module !== undefined) {
      // Posted one after the other, each goes to another thread: none has two at a time.
      const idle = Array.from({ length: this.idle }, () =>
        pool.run({ type: 'close' } satisfies ThreadMessage).catch(() => {}),
      );
      await Promise.race([Promise.all(idle), delay(CLOSE_MS)]);
    }
    // A thread that native code holds does not end; the process is about to.
    await Promise.race([pool.destroy(), delay(CLOSE_MS)]);
  }

  #open(): Piscina {
    const { threads, niceIncrement, heapLimitBytes } = this.options;
    const pool = new Piscina({
      filename: fileURLToPath(new URL('./thread/thread-entry.js', import.meta.url)),
      name: 'handle',
      minThreads: threads,
      maxThreads: threads,
      idleTimeout: Infinity,
      // Tasks may be asynchronous, and so is what their module does: Atomics.wait() would freeze it.
      atomics: 'disabled',
      recordTiming: false,
      niceIncrement,
      workerData: this.plan,
      ...(Number.isFinite(heapLimitBytes) && {
        resourceLimits: { maxOldGenerationSizeMb: Math.floor(heapLimitBytes / 2 ** 20) },
      }),
    });
    // Piscina counts a thread as idle right after it has told of it.
    pool.on('workerCreate', () => queueMicrotask(() => this.events.changed()));
    pool.on('error', (error: unknown) => this.#onError(pool, error));
    return pool;
  }

  /** A thread died of something while it ran no task, or did not start. */
  #onError(pool: Piscina, error: unknown): void {
    if (this.#closed || pool !== this.#pool) return;
    this.events.warning(`a thread died: ${String(error)}`);
    if (pool.threads.length >= this.options.threads) return;
    // Piscina starts none in its place: it has given up on them.
    this.#retry ??= setTimeout(() => this.#reopen(), this.#retryMs).unref();
    this.#retryMs = Math.min(this.#retryMs * 2, MAX_RETRY_MS);
    this.events.changed();
  }

  #reopen(): void {
    this.#retry = undefined;
    const before = this.#pool;
    this.#pool = this.#open();
    void before.close().catch(() => {});
  }

  /** Looks after the threads that `action` ends. */
  #watchEnds(pool: Piscina, action: () => void): void {
    const before = pool.threads as Worker[];
    action();
    const after = new Set(pool.threads);
    for (const thread of before.filter((each) => !after.has(each))) {
      const overdue = setTimeout(() => this.events.stuck(), END_MS).unref();
      void once(thread, 'exit').then(() => clearTimeout(overdue));
    }
  }
}
