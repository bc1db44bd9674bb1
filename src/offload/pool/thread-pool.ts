import { setTimeout as delay } from 'node:timers/promises';
import { PoolThread, type PooledThread, type ThreadEvents } from './pool-thread.js';
import type { Run, Runner, RunRequest } from '../task/runner.interface.js';
import type { ThreadPlan } from '../thread/plan.js';
import { describeProblems, type Problem } from '../thread/problem.js';
import { endedWhileLoading, lostClass, warnOfChanges, warnWhileSlow } from './thread-warnings.js';

/** Wait before a failed start of a thread is tried again, in ms. It doubles with each failure, up to the maximum. */
const RETRY_MS = 1_000;
const MAX_RETRY_MS = 30_000;

/** Time without a call after which a thread ends, and time between two checks for it, in ms. */
const IDLE_MS = 60_000;
const IDLE_CHECK_MS = 5_000;

/** If a lost thread is still held by native code after this time, in ms, this process should be replaced. */
const END_MS = 5_000;

/** Maximum time for all threads to end at close, in ms. */
const CLOSE_MS = 2_000;

interface PoolOptions {
  /** Maximum number of threads. */
  readonly threads: number;
  /** Number of threads that keep running when idle. */
  readonly minThreads: number;
}

/** The events of a pool. */
interface ThreadPoolEvents {
  /** The capacity has changed: calls may begin, or no thread can start any more. */
  changed(): void;
  /** A warning for the operator, on one line. */
  warning(message: string): void;
  /** A warning that holds for the threads of all workers, not only of this worker. */
  readonly warnOfAll: (message: string) => void;
  /** The problem will persist, so this process should be replaced. */
  unfit(reason: string): void;
}

/** Starts threads when calls wait, and ends idle threads. A lost thread is replaced at once: it was needed just before. */
export class ThreadPool implements Runner {
  readonly #threads: PooledThread[] = [];
  /** Number of lost threads that have not ended yet, and still use CPU time. */
  #ending = 0;
  #startMs = 0;
  /** Whether the thread that was started last cannot run tasks. */
  #failing = false;
  #retryMs = RETRY_MS;
  #retry: NodeJS.Timeout | undefined;
  #idleCheck: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(
    private readonly plan: ThreadPlan,
    private readonly options: PoolOptions,
    private readonly events: ThreadPoolEvents,
    private readonly open = (told: ThreadEvents): PooledThread => new PoolThread(plan, told),
  ) {}

  get size(): number {
    return this.#failing ? this.#ready : this.options.threads;
  }

  get threads(): number {
    return this.#threads.length;
  }

  get spare(): number {
    return this.#closed ? 0 : this.size - this.#ready;
  }

  get startMs(): number {
    return this.#startMs;
  }

  get idle(): number {
    return Math.max(0, this.#count(({ isIdle }) => isIdle) - this.#ending);
  }

  /**
   * Starts a thread to check that all tasks can be loaded.
   *
   * @returns the problems, in words. None if a file has changed since this process started: a
   * compiler may still be writing it.
   */
  async check(): Promise<readonly string[]> {
    if (this.#ready > 0) return [];
    // This thread takes no calls. It ends after the check to free its memory.
    const thread = this.#start({ lost() {}, died() {}, lostClass() {} });
    const problems = await thread.report.then(describeProblems, (error: unknown) => [
      endedWhileLoading(this.plan, error),
    ]);
    await thread.leave();
    return problems.length > 0 && this.#warnOfChanges() ? [] : problems;
  }

  /** Starts the threads that keep running. */
  keep(): void {
    while (this.#mayAdd && this.threads < this.options.minThreads) this.#add();
  }

  expect(waiting: number): void {
    const starting = this.threads - this.#ready;
    for (let n = starting + this.idle; n < waiting && this.#mayAdd; n += 1) this.#add();
  }

  run(request: RunRequest): Run {
    // The first idle thread gets the call, so that later threads stay idle and can end.
    return this.#threads.find(({ isIdle }) => isIdle)!.run(request);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#retry);
    clearInterval(this.#idleCheck);
    const threads = this.#threads.splice(0);
    for (const thread of threads) {
      if (thread.isIdle) void thread.leave();
      else thread.end();
    }
    // Do not wait longer: a thread in native code may not end.
    const all = Promise.all(threads.map(({ exited }) => exited));
    await Promise.race([all, delay(CLOSE_MS, undefined, { ref: false })]);
  }

  get #ready(): number {
    return this.#count(({ state }) => state === 'ready');
  }

  get #mayAdd(): boolean {
    return !this.#closed && !this.#failing && this.threads < this.options.threads;
  }

  #count(which: (thread: PooledThread) => boolean): number {
    let count = 0;
    for (const thread of this.#threads) if (which(thread)) count += 1;
    return count;
  }

  #start(events: ThreadEvents): PooledThread {
    const startedAt = performance.now();
    this.#warnOfChanges();
    const thread = this.open(events);
    warnWhileSlow(thread.report, this.plan, this.events.warnOfAll);
    thread.report.then(
      () => (this.#startMs = performance.now() - startedAt),
      () => {}, // the caller that needs the thread handles the error
    );
    return thread;
  }

  #warnOfChanges(): boolean {
    return warnOfChanges(this.plan, this.events.warnOfAll);
  }

  /** Starts a thread for calls, which runs until it is idle for too long. */
  #add(): void {
    const thread: PooledThread = this.#start({
      lost: () => this.#onLost(thread),
      died: (error) => {
        if (!this.#closed) this.events.warning(`a thread died: ${String(error)}`);
      },
      lostClass: (name) => this.events.warnOfAll(lostClass(name)),
    });
    this.#threads.push(thread);
    thread.report.then(
      (problems) => this.#onReport(thread, problems),
      (error: unknown) => this.#onFailure(thread, [`they end while they load (${String(error)})`]),
    );
  }

  #onReport(thread: PooledThread, problems: readonly Problem[]): void {
    if (problems.length > 0) return this.#onFailure(thread, describeProblems(problems));
    if (!this.#threads.includes(thread)) return;
    thread.becomeReady();
    this.#failing = false;
    this.#retryMs = RETRY_MS;
    this.#idleCheck ??= setInterval(() => this.#endIdle(), IDLE_CHECK_MS).unref();
    this.keep();
    this.events.changed();
  }

  /** The thread cannot run tasks, and another thread could not either. */
  #onFailure(thread: PooledThread, causes: readonly string[]): void {
    if (!this.#remove(thread)) return;
    thread.end();
    this.#failing = true;
    if (this.#closed || this.#retry !== undefined) return;
    if (this.#ready === 0 && this.#retryMs > RETRY_MS)
      this.events.unfit('its threads do not start');
    this.events.warning(
      `threads do not start: ${causes.join(' | ')}; it is tried again in ${this.#retryMs} ms`,
    );
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      this.#add();
    }, this.#retryMs).unref();
    this.#retryMs = Math.min(this.#retryMs * 2, MAX_RETRY_MS);
    this.events.changed();
  }

  #onLost(thread: PooledThread): void {
    if (!this.#remove(thread)) return;
    const overdue = setTimeout(() => {
      this.events.unfit('a thread that was to be ended is held by native code');
    }, END_MS).unref();
    this.#ending += 1;
    void thread.exited.then(() => {
      clearTimeout(overdue);
      this.#ending -= 1;
      this.events.changed();
    });
    if (this.#mayAdd) this.#add();
    this.events.changed();
  }

  #endIdle(): void {
    const due = performance.now() - IDLE_MS;
    for (const thread of this.#threads.toReversed()) {
      if (this.threads <= this.options.minThreads) break;
      if (thread.isIdle && thread.since <= due && this.#remove(thread)) void thread.leave();
    }
    if (this.threads > this.options.minThreads) return;
    clearInterval(this.#idleCheck);
    this.#idleCheck = undefined;
  }

  /** @returns whether the thread was in the pool. */
  #remove(thread: PooledThread): boolean {
    const index = this.#threads.indexOf(thread);
    return index >= 0 && this.#threads.splice(index, 1).length > 0;
  }
}
