import { setTimeout as delay } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import type { Piscina } from 'piscina';
import { compileCacheDirectory } from '../../contract/process/compile-cache.js';
import { environmentOfThread } from '../../contract/process/telemetry.js';
import { contentsOf } from '../task/parcel.js';
import type { Offer, OfferEvents, Run, RunRequest, RunResult } from '../task/runner.interface.js';
import { type Claim, isFirstToClaim, newClaim } from '../thread/claim.js';
import type { ThreadPlan, ThreadSettings } from '../thread/plan.js';
import { THREAD_PROGRAM } from '../thread/thread-program.js';
import type { SentRequest, ThreadMessage, ThreadReport } from '../thread/thread-host.js';

/** Maximum time for `offload.module` to close, in ms. */
const CLOSE_MS = 1_000;

/** Maximum number of unanswered messages: a running call, a call sent ahead, a call taken back, and `close`. */
const MAX_MESSAGES = 4;

/** On Linux each thread has a nice value. On other systems a thread would change the nice value of its process. */
const SETS_OWN_NICENESS = process.platform === 'linux';

export interface ThreadOptions {
  /** How much a thread's nice value is raised while it computes. */
  readonly niceIncrement: number;
}

export interface ThreadEvents {
  /** A ready thread has ended or is ending, by itself or because its call was aborted. */
  lost(): void;
  /** The thread ended by an error while it had no call that could report the error. */
  died(error: unknown): void;
  /** The thread may take an offer again. */
  changed(): void;
}

/** `starting → ready → ended`. Only a ready thread is given calls. */
type ThreadState = 'starting' | 'ready' | 'ended';

/** A call that was sent ahead, which the thread is to begin next. */
interface AheadCall {
  readonly claim: Claim;
  readonly events: OfferEvents;
}

/** The public members of {@link PoolThread}. */
export type PooledThread = Pick<PoolThread, keyof PoolThread>;

/** One thread. It runs one call at a time, and may hold the next call. */
export class PoolThread {
  #state: ThreadState = 'starting';
  /** Resolves once the thread has tried to load its tasks. Rejects if the thread ends before that. */
  readonly report: Promise<ThreadReport>;
  readonly exited: Promise<void>;
  /** When the thread became busy or idle, in monotonic ms. */
  since = performance.now();
  #isBusy = false;
  #piscina: Piscina | undefined;
  readonly #opened: Promise<Piscina>;
  #resolveExited!: () => void;
  #ahead: AheadCall | undefined;
  /** Whether the thread holds a call sent ahead that it has neither begun nor found to be taken back. */
  #holdsOffer = false;

  constructor(
    plan: ThreadPlan,
    options: ThreadOptions,
    private readonly events: ThreadEvents,
  ) {
    this.exited = new Promise((resolve) => (this.#resolveExited = resolve));
    this.#opened = this.#open(plan, options);
    this.report = this.#opened.then(() => this.#post({ type: 'check' }) as Promise<ThreadReport>);
    this.#opened.catch(() => this.#resolveExited()); // no thread was started, so none will exit
  }

  get state(): ThreadState {
    return this.#state;
  }

  get isIdle(): boolean {
    return this.#state === 'ready' && !this.#isBusy;
  }

  /** Whether a call may be sent ahead to this thread. */
  get takesOffer(): boolean {
    return this.#state === 'ready' && this.#isBusy && !this.#holdsOffer;
  }

  becomeReady(): void {
    this.#state = 'ready';
    this.since = performance.now();
  }

  run(request: RunRequest): Run {
    const { moved, buffers } = contentsOf(request.args);
    this.#begin();
    return { result: this.#send({ ...request, buffers }, moved), abort: () => this.#abort() };
  }

  /** No argument may be moved, because the call may have to be sent a second time. */
  offer(request: RunRequest, events: OfferEvents): Offer {
    const { buffers } = contentsOf(request.args);
    const ahead: AheadCall = { claim: newClaim(), events };
    this.#ahead = ahead;
    this.#holdsOffer = true;
    const result = this.#send({ ...request, buffers, claim: ahead.claim });
    result.catch(() => {}); // the dispatcher handles it once the call has begun
    return { result, abort: () => this.#abort(), takeBack: () => this.#takeBack(ahead) };
  }

  /** Ends an idle thread, after its module has closed. */
  async leave(): Promise<void> {
    this.#state = 'ended';
    if (this.#piscina !== undefined) {
      const closed = this.#post({ type: 'close' }).catch(() => {});
      await Promise.race([closed, delay(CLOSE_MS, undefined, { ref: false })]);
    }
    this.end();
  }

  end(): void {
    this.#state = 'ended';
    // A piscina that is still opening is destroyed as soon as it is open.
    void this.#opened.then((piscina) => piscina.destroy()).catch(() => {});
  }

  /**
   * Each thread has its own piscina. A common piscina cannot send a call ahead to a chosen thread.
   * A common piscina also ends idle threads without closing their modules, and running threads only
   * by an AbortSignal. With it, throughput was 0.87 times as high for calls of 50 µs, and equal for
   * calls of 6 ms (docs/cpu-bound-methods.md#threads).
   */
  async #open(plan: ThreadPlan, { niceIncrement }: ThreadOptions): Promise<Piscina> {
    // Loaded with the first thread, because it takes about 8 MB.
    const { Piscina } = await import('piscina');
    const env = environmentOfThread();
    const piscina = new Piscina({
      filename: THREAD_PROGRAM,
      name: 'handle',
      minThreads: 1,
      maxThreads: 1,
      concurrentTasksPerWorker: MAX_MESSAGES,
      // Atomics.wait() would block asynchronous work of tasks and of their module.
      atomics: 'disabled',
      recordTiming: false,
      niceIncrement: SETS_OWN_NICENESS ? 0 : niceIncrement,
      workerData: {
        plan,
        niceIncrement: SETS_OWN_NICENESS ? niceIncrement : 0,
        compileCache: compileCacheDirectory(),
      } satisfies ThreadSettings,
      ...(env && { env }),
    });
    const [worker] = piscina.threads as Worker[];
    worker!.once('exit', () => this.#resolveExited());
    piscina.on('error', (error: unknown) => this.events.died(error));
    piscina.on('workerDestroy', () => {
      if (this.#state === 'ended') return;
      const wasReady = this.#state === 'ready';
      this.#state = 'ended';
      // Destroyed before piscina starts another thread, because the pool decides whether another
      // thread is started.
      void piscina.destroy();
      if (wasReady) this.events.lost();
    });
    this.#piscina = piscina;
    return piscina;
  }

  #post(message: ThreadMessage, transferList: readonly ArrayBuffer[] = []): Promise<unknown> {
    return this.#piscina!.run(message, { transferList: transferList as ArrayBuffer[] });
  }

  #send(call: SentRequest, moved?: readonly ArrayBuffer[]): Promise<RunResult> {
    return this.#post({ type: 'run', ...call }, moved).then(
      (result) => {
        if (result === undefined) this.#onTakenBack();
        else this.#goOn();
        return result as RunResult;
      },
      (error: unknown) => {
        this.#goOn();
        throw error;
      },
    );
  }

  #begin(): void {
    this.#isBusy = true;
    this.since = performance.now();
  }

  /** The running call is over, and the thread begins the call that was sent ahead. */
  #goOn(): void {
    this.#isBusy = false;
    this.since = performance.now();
    const ahead = this.#ahead;
    if (ahead === undefined) return;
    this.#ahead = undefined;
    // Even a thread that is ending may have begun the call.
    if (this.#state !== 'ready' && isFirstToClaim(ahead.claim)) return ahead.events.returned();
    this.#holdsOffer = false;
    this.#begin();
    ahead.events.begun();
  }

  #takeBack(ahead: AheadCall): boolean {
    if (this.#ahead !== ahead || !isFirstToClaim(ahead.claim)) return false;
    this.#ahead = undefined;
    return true;
  }

  /** The thread has seen that a call was taken back. */
  #onTakenBack(): void {
    this.#holdsOffer = false;
    this.events.changed();
  }

  /** Ends the running call together with the thread. */
  #abort(): void {
    const ahead = this.#ahead;
    // If the next call has begun, this call has ended and its result will arrive.
    if (ahead !== undefined && !this.#takeBack(ahead)) return;
    ahead?.events.returned();
    this.end();
    this.events.lost();
  }
}
