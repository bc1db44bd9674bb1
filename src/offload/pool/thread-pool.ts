import { setTimeout as delay } from 'node:timers/promises';
import { HeldThreads } from './held-threads.js';
import { type Niceness, nicenessOf, NO_NICER } from './niceness.js';
import { PoolThread, type ThreadEvents } from './pool-thread.js';
import type { Offer, OfferEvents, Run, Runner, RunRequest } from '../task/runner.interface.js';
import { Offers } from '../thread/offers.js';
import type { ThreadPlan } from '../thread/plan.js';
import type {
  OpenThread,
  PooledThread,
  PoolOptions,
  ThreadPoolEvents,
} from './thread-pool.interface.js';
import { describeProblems, type Problem } from '../thread/problem.js';
import { endedWhileLoading, ThreadWarnings } from './thread-warnings.js';

/** Wait before a thread that did not start is tried again; each further time twice as long. */
const RETRY_MS = 1_000;
const MAX_RETRY_MS = 30_000;

/** A thread that had nothing to do for so long ends; whether there is one is looked at this often. */
const IDLE_MS = 60_000;
const IDLE_CHECK_MS = 5_000;

/** Threads that were told to end and have not keep their places for offers: there are more places than threads. */
const PLACES_PER_THREAD = 2;

/** For all threads to end. */
const CLOSE_MS = 1_000;

/**
 * Threads that come when calls wait and go when none do. One that is lost with
 * its call, or by itself, is replaced at once: it was needed a moment ago.
 */
export class ThreadPool implements Runner {
  readonly #threads: PooledThread[] = [];
  readonly #offers: Offers;
  /** The last thread that was started while no other was coming. */
  #only: PooledThread | undefined;
  #startMs = 0;
  /** The last one that was started cannot do its work. */
  #failing = false;
  #retryMs = RETRY_MS;
  #retry: NodeJS.Timeout | undefined;
  #idleCheck: NodeJS.Timeout | undefined;
  readonly #warnings: ThreadWarnings;
  #closed = false;
  readonly #held: HeldThreads;

  constructor(
    private readonly plan: ThreadPlan,
    private readonly options: PoolOptions,
    private readonly events: ThreadPoolEvents,
    private readonly open: OpenThread = (offers, place, told, niceness) =>
      new PoolThread(plan, { ...options, ...niceness }, offers, place, told),
  ) {
    this.#warnings = new ThreadWarnings(plan, options.heapLimitBytes, (message) =>
      events.warnOfAll(message),
    );
    this.#offers = Offers.of(options.threads * PLACES_PER_THREAD);
    this.#held = new HeldThreads(events);
  }

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
    // One that native code holds still takes its core.
    return Math.max(0, this.#count(({ isIdle }) => isIdle) - this.#held.size);
  }

  /** Resolves once a thread has loaded everything: with what stands in the way of the plan, in words, if anything does. */
  async check(): Promise<readonly string[]> {
    if (this.#ready > 0) return [];
    // None of those that calls wait for: it goes again, and with it its memory.
    // And it computes for nobody: the start and a reload wait for it, on a machine that may be busy.
    const thread = this.#start({ lost() {}, died() {}, changed() {} }, NO_NICER);
    try {
      return describeProblems((await thread.report).problems);
    } catch (error) {
      return [endedWhileLoading(this.plan, error)];
    } finally {
      await thread.leave();
    }
  }

  /** Starts those that are always to be there. */
  keep(): void {
    while (this.#mayAdd && this.threads < this.options.minThreads) this.#add();
  }

  expect(waiting: number): void {
    const starting = this.threads - this.#ready;
    for (let n = starting + this.idle; n < waiting && this.#mayAdd; n += 1) this.#add();
  }

  run(request: RunRequest): Run {
    // Always the first one: those behind it can end.
    const thread = this.#threads.find(({ isIdle }) => isIdle)!;
    const { result, abort } = thread.run(request);
    return { result, abort: () => this.#abort(thread, abort) };
  }

  offer(request: RunRequest, order: number, events: OfferEvents): Offer | undefined {
    const [thread] = this.#threads
      .filter(({ takesOffer }) => takesOffer)
      .toSorted((one, other) => one.since - other.since);
    if (thread === undefined) return undefined;
    const { result, abort, takeBack } = thread.offer(request, order, events);
    return { result, abort: () => this.#abort(thread, abort), takeBack };
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
    // One that native code holds does not end: it is not waited for.
    const all = Promise.all(threads.map(({ exited }) => exited));
    await Promise.race([all, delay(2 * CLOSE_MS, undefined, { ref: false })]);
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

  #start(events: ThreadEvents, niceness: Niceness): PooledThread {
    const startedAt = performance.now();
    const place = this.#offers.takePlace();
    const thread = this.open(this.#offers, place, events, niceness);
    void thread.exited.then(() => this.#offers.freePlace(place));
    this.#warnings.follow(thread.report);
    thread.report.then(
      () => (this.#startMs = performance.now() - startedAt),
      () => {}, // the caller that needs the thread is told
    );
    return thread;
  }

  /** Starts one that stays as long as there is something for it to do. */
  #add(): void {
    const isOnly = !this.#threads.some((each) => each.state === 'ready' || each === this.#only);
    const thread: PooledThread = this.#start(
      {
        lost: () => this.#onLost(thread),
        died: (error) => {
          if (!this.#closed) this.events.warning(`a thread died: ${String(error)}`);
        },
        changed: () => this.events.changed(),
      },
      nicenessOf(this.options.niceIncrement, isOnly),
    );
    if (isOnly) this.#only = thread;
    this.#threads.push(thread);
    thread.report.then(
      ({ problems }) => this.#onReport(thread, problems),
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

  /** It cannot do its work, and so could no other. */
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

  /** It ended by itself, not while it loaded: then its report says so. */
  #onLost(thread: PooledThread): void {
    if (!this.#remove(thread)) return;
    if (this.#mayAdd) this.#add();
    this.events.changed();
  }

  /** Has the call of a thread ended, and looks after the thread if that ends with it. */
  #abort(thread: PooledThread, abort: () => void): void {
    abort();
    if (thread.state !== 'ended' || !this.#remove(thread)) return;
    this.#held.add(thread);
    if (this.#mayAdd) this.#add();
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

  /** @returns whether it was one of them. */
  #remove(thread: PooledThread): boolean {
    const index = this.#threads.indexOf(thread);
    return index >= 0 && this.#threads.splice(index, 1).length > 0;
  }
}
