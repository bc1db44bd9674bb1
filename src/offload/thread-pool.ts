import { existsSync } from 'node:fs';
import type { Worker } from 'node:worker_threads';
import type { Run, Runner, RunRequest } from './runner.interface.js';
import { ENTRY, type ThreadOptions, ThreadSet } from './thread-set.js';
import type { ThreadPlan } from './thread/plan.js';
import { describeProblems } from './thread/problem.js';

/** A thread in JavaScript ends at once when it is told to; one in native code only when that returns. */
const END_MS = 5_000;

/** Wait before threads that did not start are tried again; each further time twice as long. */
const RETRY_MS = 1_000;
const MAX_RETRY_MS = 30_000;

/** Threads that have not loaded by then are worth a word. */
const SLOW_MS = 10_000;

/** What V8 allows a thread above its limit for old objects, roughly: for young ones, and rounding. */
const HEAP_MARGIN_BYTES = 128 * 2 ** 20;

/** What is told of a pool. */
export interface ThreadPoolEvents {
  /** There may be more capacity, or none to come. */
  changed(): void;
  /** Something an operator should know; one line. */
  warning(message: string): void;
  /** What is wrong will not pass: another process should take this one's place. */
  unfit(reason: string): void;
}

/** Keeps as many threads as there should be, and looks after those that do not start and do not end. */
export class ThreadPool implements Runner {
  #set: ThreadSet;
  #retryMs = RETRY_MS;
  #retry: NodeJS.Timeout | undefined;
  #startMs = 0;
  #closed = false;
  /** Threads that have been told to end, and have not yet. */
  readonly #ending = new Set<Worker>();

  constructor(
    private readonly plan: ThreadPlan,
    private readonly options: ThreadOptions,
    private readonly events: ThreadPoolEvents,
  ) {
    this.#set = this.#open();
  }

  get size(): number {
    return this.#set.threads.length;
  }

  get startMs(): number {
    return this.#startMs;
  }

  get idle(): number {
    // One that native code holds still takes its core.
    return Math.max(0, this.#set.idle - this.#ending.size);
  }

  /** Resolves once all threads are ready: with what stands in the way of the plan, in words, if anything does. */
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
      const startedAt = performance.now();
      const reports = await this.#set.loaded();
      this.#startMs = performance.now() - startedAt;
      this.#warnOfHeap(Math.max(...reports.map(({ heapLimitBytes }) => heapLimitBytes)));
      return describeProblems(reports.flatMap(({ problems }) => problems));
    } catch (error) {
      return [
        `a thread ended while it loaded ${files} (${String(error)}); what runs at import must not end it: no process.exit() there`,
      ];
    } finally {
      clearTimeout(slow);
    }
  }

  run(request: RunRequest): Run {
    const set = this.#set;
    const { result, abort } = set.run(request);
    return { result, abort: () => this.#watchEnds(set, abort) };
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#retry);
    await this.#set.destroy();
  }

  #open(): ThreadSet {
    const set: ThreadSet = new ThreadSet(this.plan, this.options, {
      ready: () => this.events.changed(),
      ended: () => {
        if (set === this.#set) this.#replaceMissing();
      },
      died: (error) => {
        if (!this.#closed) this.events.warning(`a thread died: ${String(error)}`);
      },
    });
    return set;
  }

  #replaceMissing(): void {
    const missing = this.options.threads - this.size;
    if (missing === 0 || this.#closed) return;
    if (this.size === 0 && this.#retryMs > RETRY_MS) this.events.unfit('its threads do not start');
    this.#scheduleReopen(`${missing} of ${this.options.threads} threads did not start again`);
    this.events.changed();
  }

  #scheduleReopen(why: string): void {
    if (this.#closed || this.#retry !== undefined) return;
    this.events.warning(`${why}; all are started anew in ${this.#retryMs} ms`);
    this.#retry = setTimeout(() => void this.#reopen(), this.#retryMs).unref();
    this.#retryMs = Math.min(this.#retryMs * 2, MAX_RETRY_MS);
  }

  /** The new threads take over once they can do the work; those that are left go on until then. */
  async #reopen(): Promise<void> {
    const set = this.#open();
    const reports = await set.loaded().catch(() => undefined);
    this.#retry = undefined;
    const problems = reports?.flatMap((report) => report.problems);
    if (this.#closed || problems?.length !== 0) {
      void set.destroy();
      const causes = problems ? describeProblems(problems) : ['they end while they load'];
      return this.#scheduleReopen(`threads do not start: ${causes.join(' | ')}`);
    }
    const before = this.#set;
    this.#set = set;
    this.#retryMs = RETRY_MS;
    void before.retire().catch(() => {});
    this.events.changed();
  }

  /** V8's own flag is for all threads of a process, and wins. */
  #warnOfHeap(actualBytes: number): void {
    const { heapLimitBytes } = this.options;
    if (actualBytes <= heapLimitBytes + HEAP_MARGIN_BYTES) return;
    this.events.warning(
      `offload.heapLimitBytes has no effect beside --max-old-space-size: a thread may fill ${Math.round(actualBytes / 1e6)} MB`,
    );
  }

  /** Looks after the threads that `action` ends. */
  #watchEnds(set: ThreadSet, action: () => void): void {
    const before = set.threads;
    action();
    const after = new Set(set.threads);
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
