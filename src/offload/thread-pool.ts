import { EventEmitter } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Worker } from 'node:worker_threads';
import { Piscina } from 'piscina';
import { MAX_TIMER_MS } from '../options/module.js';
import { contentsOf } from './parcel.js';
import type { Run, Runner, RunRequest, RunResult } from './runner.interface.js';
import type { ThreadPlan } from './thread/plan.js';
import { describeProblems, type Problem } from './thread/problem.js';
import type { ThreadMessage } from './thread/thread-host.js';

/** A thread in JavaScript ends at once when it is told to; one in native code only when that returns. */
const END_MS = 5_000;

/** For `offload.module` to close, and for all threads to end, when the pool is closed. */
const CLOSE_MS = 1_000;

/** Wait before threads that did not start are tried again; each further time twice as long. */
const RETRY_MS = 1_000;
const MAX_RETRY_MS = 30_000;

/** Threads that have not loaded by then are worth a word. */
const SLOW_MS = 10_000;

const ENTRY = fileURLToPath(new URL('./thread/thread-entry.js', import.meta.url));

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
  /** What is wrong will not pass: another process should take this one's place. */
  unfit(reason: string): void;
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
  #broken = false;
  #closed = false;
  /** Threads that have been told to end, and have not yet. */
  readonly #ending = new Set<Worker>();

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

  /** Its threads could not load what they need; it is tried again. */
  get broken(): boolean {
    return this.#broken;
  }

  get idle(): number {
    // One that native code holds still takes its core.
    return Math.max(0, this.#pool.idleThreads - this.#ending.size);
  }

  /** What stands in the way of running the plan, in words; empty where nothing does. */
  async check(): Promise<readonly string[]> {
    const files = [...new Set(this.plan.tasks.map(({ file }) => file))].join(', ');
    if (!existsSync(ENTRY)) {
      return [
        `nestjs-cluster is part of a bundle (there is no ${ENTRY}), and threads cannot be started from there; ` +
          `leave it and the app's classes out of the bundle (build with tsc or SWC alone), or set CLUSTER_OFFLOAD=inline`,
      ];
    }
    const slow = setTimeout(() => {
      this.events.warning(
        `threads have not loaded ${files} after ${SLOW_MS / 1_000} s; what runs at import, and offload.module, must come to an end in a thread too`,
      );
    }, SLOW_MS);
    try {
      const problems = await this.#pool.run({ type: 'check' } satisfies ThreadMessage);
      return describeProblems(problems as readonly Problem[]);
    } catch (error) {
      return [
        `a thread ended while it loaded ${files} (${String(error)}); what runs at import must not end it: no process.exit() there`,
      ];
    } finally {
      clearTimeout(slow);
    }
  }

  run(request: RunRequest): Run {
    const { moved, buffers } = contentsOf(request.args);
    const message: ThreadMessage = { type: 'run', ...request, buffers };
    const signal = new AbortSwitch();
    const pool = this.#pool;
    const sent = pool.run(message, { signal, transferList: moved }) as Promise<RunResult>;
    const result = sent.then((how) => {
      if (pool === this.#pool) this.#noteLoaded(!('unavailable' in how));
      return how;
    });
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
      await Promise.race([Promise.all(idle), delay(CLOSE_MS, undefined, { ref: false })]);
    }
    // A thread that native code holds does not end; the process is about to.
    await Promise.race([pool.destroy(), delay(CLOSE_MS, undefined, { ref: false })]);
  }

  #open(): Piscina {
    const { threads, niceIncrement, heapLimitBytes } = this.options;
    const pool = new Piscina({
      filename: ENTRY,
      name: 'handle',
      minThreads: threads,
      maxThreads: threads,
      idleTimeout: Infinity,
      // Tasks may be asynchronous, and so is what their module does: Atomics.wait() would freeze it.
      atomics: 'disabled',
      recordTiming: false,
      // Of a pool that another takes the place of: its tasks have limits of their own.
      closeTimeout: MAX_TIMER_MS,
      niceIncrement,
      workerData: this.plan,
      ...(Number.isFinite(heapLimitBytes) && {
        resourceLimits: { maxOldGenerationSizeMb: Math.floor(heapLimitBytes / 2 ** 20) },
      }),
    });
    // Piscina counts a thread as idle right after it has told of it.
    pool.on('workerCreate', () => queueMicrotask(() => this.events.changed()));
    pool.on('error', (error: unknown) => this.#onError(error));
    // Told of every end. Where it takes none in its place, piscina has given up on its threads for good.
    pool.on('workerDestroy', () => queueMicrotask(() => this.#replaceMissing(pool)));
    return pool;
  }

  /** A thread died of something while it ran no task. */
  #onError(error: unknown): void {
    if (!this.#closed) this.events.warning(`a thread died: ${String(error)}`);
  }

  #replaceMissing(pool: Piscina): void {
    const missing = this.options.threads - pool.threads.length;
    if (pool !== this.#pool || missing === 0) return;
    this.#scheduleReopen(`${missing} of ${this.options.threads} threads did not start again`);
    this.events.changed();
  }

  /** A thread that starts may find less than those before it: files go with a deploy. */
  #noteLoaded(loaded: boolean): void {
    if (this.#broken !== loaded) return;
    this.#broken = !loaded;
    if (!loaded) this.#scheduleReopen('threads cannot load what they need');
  }

  #scheduleReopen(why: string): void {
    if (this.#closed || this.#retry !== undefined) return;
    this.events.warning(`${why}; they are started anew in ${this.#retryMs} ms`);
    const serves = this.size > 0 && !this.#broken;
    if (!serves && this.#retryMs > RETRY_MS) this.events.unfit('its threads do not start');
    this.#retry = setTimeout(() => void this.#reopen(), this.#retryMs).unref();
    this.#retryMs = Math.min(this.#retryMs * 2, MAX_RETRY_MS);
  }

  async #reopen(): Promise<void> {
    const before = this.#pool;
    const pool = this.#open();
    this.#pool = pool;
    this.#retry = undefined;
    void before.close().catch(() => {});
    const problems = await pool.run({ type: 'check' } satisfies ThreadMessage).catch(() => [true]);
    if (pool !== this.#pool) return;
    this.#broken = (problems as unknown[]).length > 0;
    if (this.#broken) this.#scheduleReopen('threads cannot load what they need');
    else this.#retryMs = RETRY_MS;
    this.events.changed();
  }

  /** Looks after the threads that `action` ends. */
  #watchEnds(pool: Piscina, action: () => void): void {
    const before = pool.threads as Worker[];
    action();
    const after = new Set(pool.threads);
    for (const thread of before.filter((each) => !after.has(each))) {
      const overdue = setTimeout(() => {
        this.events.unfit('a thread that was to be ended is held by native code');
      }, END_MS).unref();
      this.#ending.add(thread);
      thread.once('exit', () => {
        clearTimeout(overdue);
        this.#ending.delete(thread);
        this.events.changed();
      });
    }
  }
}
