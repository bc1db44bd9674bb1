import { EventEmitter } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { Piscina } from 'piscina';
import { MAX_TIMER_MS } from '../options/module.js';
import { besideThis } from '../process/own-file.js';
import { contentsOf } from './parcel.js';
import type { RunRequest, RunResult } from './runner.interface.js';
import type { ThreadPlan, ThreadSettings } from './thread/plan.js';
import type { ThreadMessage, ThreadReport } from './thread/thread-host.js';

/** What a thread runs. */
export const ENTRY = besideThis('offload/thread/thread-entry.js') ?? 'thread-entry.js';

/** For `offload.module` to close, and for all threads to end. */
const CLOSE_MS = 1_000;

/** `terminate()` is asked for with a signal; an emitter will do, and costs less than an AbortController. */
class AbortSwitch extends EventEmitter {
  aborted = false;

  abort(): void {
    this.aborted = true;
    this.emit('abort');
  }
}

export interface ThreadOptions {
  readonly threads: number;
  readonly niceIncrement: number;
  /** `Infinity` = Node's own limit. */
  readonly heapLimitBytes: number;
}

/** What is told of a set. */
export interface ThreadSetEvents {
  /** A thread is ready. */
  ready(): void;
  /** A thread has ended, however, and another has been started for it or not. */
  ended(): void;
  /** A thread died of something that no call is told of. */
  died(error: unknown): void;
}

/**
 * Threads that were started together, and those that piscina starts in their
 * place, each with one call at a time. A thread that starts later and finds
 * less than the first ones did (files that a deploy has taken away) does not
 * come up; after that piscina starts none any more.
 */
export class ThreadSet {
  readonly #pool: Piscina;
  /** 1 once all have loaded what they need: from then on whoever cannot is of no use. */
  readonly #strict = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  readonly #reports: Promise<ThreadReport>[];

  constructor(plan: ThreadPlan, options: ThreadOptions, events: ThreadSetEvents) {
    const { threads, niceIncrement, heapLimitBytes } = options;
    const workerData: ThreadSettings = { plan, strict: this.#strict };
    const pool = new Piscina({
      filename: ENTRY,
      name: 'handle',
      minThreads: threads,
      maxThreads: threads,
      idleTimeout: Infinity,
      // Tasks may be asynchronous, and so is what their module does: Atomics.wait() would freeze it.
      atomics: 'disabled',
      recordTiming: false,
      // Where another set takes over: tasks have limits of their own.
      closeTimeout: MAX_TIMER_MS,
      niceIncrement,
      workerData,
      ...(Number.isFinite(heapLimitBytes) && {
        resourceLimits: { maxOldGenerationSizeMb: Math.floor(heapLimitBytes / 2 ** 20) },
      }),
    });
    // Piscina counts a thread as idle, and replaces one that is gone, right after it has told of it.
    pool.on('workerCreate', () => queueMicrotask(() => events.ready()));
    pool.on('workerDestroy', () => queueMicrotask(() => events.ended()));
    pool.on('error', (error: unknown) => events.died(error));
    this.#pool = pool;
    // Piscina takes the first ones to be ready at once: this keeps each busy until it is.
    this.#reports = this.#askEach(threads, { type: 'check' }) as Promise<ThreadReport>[];
  }

  get threads(): readonly Worker[] {
    return this.#pool.threads as Worker[];
  }

  /** Threads that are ready and have nothing to do. */
  get idle(): number {
    return this.#pool.idleThreads;
  }

  /**
   * What each thread says once it has loaded what it needs, or cannot.
   *
   * @throws when one has ended over it.
   */
  async loaded(): Promise<readonly ThreadReport[]> {
    const reports = await Promise.all(this.#reports);
    if (reports.every(({ problems }) => problems.length === 0)) Atomics.store(this.#strict, 0, 1);
    return reports;
  }

  /** Has an idle thread run the call. */
  run(request: RunRequest): { result: Promise<RunResult>; abort: () => void } {
    const { moved, buffers } = contentsOf(request.args);
    const message: ThreadMessage = { type: 'run', ...request, buffers };
    const signal = new AbortSwitch();
    const result = this.#pool.run(message, { signal, transferList: moved }) as Promise<RunResult>;
    return { result, abort: () => signal.abort() };
  }

  /** Lets calls that run come to their end first. */
  async retire(): Promise<void> {
    await this.#closeModules();
    await this.#pool.close();
  }

  /** Ends what runs. A thread that native code holds does not end: it is not waited for. */
  async destroy(): Promise<void> {
    await this.#closeModules();
    await Promise.race([this.#pool.destroy(), timeout()]);
  }

  async #closeModules(): Promise<void> {
    const closed = this.#askEach(this.idle, { type: 'close' });
    await Promise.race([Promise.allSettled(closed), timeout()]);
  }

  /** Posted one after the other, each goes to another thread: none has two calls at a time. */
  #askEach(threads: number, message: ThreadMessage): Promise<unknown>[] {
    return Array.from({ length: threads }, () => {
      const answer = this.#pool.run(message) as Promise<unknown>;
      answer.catch(() => {}); // told by whoever waits for it, if anybody does
      return answer;
    });
  }
}

function timeout(): Promise<void> {
  return delay(CLOSE_MS, undefined, { ref: false });
}
