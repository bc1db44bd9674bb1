import { setTimeout as delay } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import type { Piscina } from 'piscina';
import { besideThis } from '../../contract/process/own-file.js';
import { environmentOfThread } from '../../contract/process/telemetry.js';
import { contentsOf } from '../task/parcel.js';
import type { Offer, OfferEvents, Run, RunRequest, RunResult } from '../task/runner.interface.js';
import { type Claim, isFirstToClaim, newClaim } from '../thread/claim.js';
import type { ThreadPlan, ThreadSettings } from '../thread/plan.js';
import type { SentRequest, ThreadMessage, ThreadReport } from '../thread/thread-host.js';

/** The program of a thread. */
export const ENTRY = besideThis('offload/thread/thread-entry.js') ?? 'thread-entry.js';

/** For `offload.module` to close. */
const CLOSE_MS = 1_000;

/** A call that runs, one that was sent ahead, one that was taken back, and the word to close. */
const MAX_MESSAGES = 4;

/** Linux has a nice value for each thread. Elsewhere a thread that changed its own would change its process. */
const SETS_OWN_NICENESS = process.platform === 'linux';

export interface ThreadOptions {
  /** How much nicer than the process a thread is while it computes. */
  readonly niceIncrement: number;
}

export interface ThreadEvents {
  /** A thread that was ready has ended, or is about to: by itself, or with a call that was aborted. */
  lost(): void;
  /** It ended by an error, and had no call that could report it. */
  died(error: unknown): void;
  /** It may take an offer again. */
  changed(): void;
}

/** `starting → ready → ended`. Only a ready thread is given calls. */
type ThreadState = 'starting' | 'ready' | 'ended';

/** The call that a thread is to begin next. */
interface AheadCall {
  readonly claim: Claim;
  readonly events: OfferEvents;
}

/** The surface of {@link PoolThread}. */
export type PooledThread = Pick<PoolThread, keyof PoolThread>;

/** One thread: it runs one call, and may hold the next one. */
export class PoolThread {
  #state: ThreadState = 'starting';
  /** Its report once it has loaded its tasks, or cannot. Rejects if it ends before that. */
  readonly report: Promise<ThreadReport>;
  readonly exited: Promise<void>;
  /** Since when it runs its call, or has none; monotonic ms. */
  since = performance.now();
  #isBusy = false;
  #piscina: Piscina | undefined;
  readonly #opened: Promise<Piscina>;
  #resolveExited!: () => void;
  #ahead: AheadCall | undefined;
  /** It was sent a call ahead, and has neither begun it nor seen that it was taken back. */
  #holdsOffer = false;

  constructor(
    plan: ThreadPlan,
    options: ThreadOptions,
    private readonly events: ThreadEvents,
  ) {
    this.exited = new Promise((resolve) => (this.#resolveExited = resolve));
    this.#opened = this.#open(plan, options);
    this.report = this.#opened.then(() => this.#post({ type: 'check' }) as Promise<ThreadReport>);
    this.#opened.catch(() => this.#resolveExited()); // there is nothing to exit
  }

  get state(): ThreadState {
    return this.#state;
  }

  get isIdle(): boolean {
    return this.#state === 'ready' && !this.#isBusy;
  }

  /** Whether the next call may be sent to it while it runs another. */
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

  /** Nothing in the arguments may be moved: they may have to be sent a second time. */
  offer(request: RunRequest, events: OfferEvents): Offer {
    const { buffers } = contentsOf(request.args);
    const ahead: AheadCall = { claim: newClaim(), events };
    this.#ahead = ahead;
    this.#holdsOffer = true;
    const result = this.#send({ ...request, buffers, claim: ahead.claim });
    result.catch(() => {}); // the dispatcher follows it from its beginning
    return { result, abort: () => this.#abort(), takeBack: () => this.#takeBack(ahead) };
  }

  /** Lets its module close first. It must be idle. */
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
    // What is not open yet is closed as soon as it is.
    void this.#opened.then((piscina) => piscina.destroy()).catch(() => {});
  }

  /**
   * One piscina for each thread. A common one sends no call ahead to a chosen thread, ends an idle
   * thread without a word to its module, and a running one only by an AbortSignal. It answered 0.87
   * of the calls of 50 µs, and as many of 6 ms (docs/cpu-bound-methods.md#threads).
   */
  async #open(plan: ThreadPlan, { niceIncrement }: ThreadOptions): Promise<Piscina> {
    // With the first thread and not before: it takes some 8 MB.
    const { Piscina } = await import('piscina');
    const env = environmentOfThread();
    const piscina = new Piscina({
      filename: ENTRY,
      name: 'handle',
      minThreads: 1,
      maxThreads: 1,
      concurrentTasksPerWorker: MAX_MESSAGES,
      // Tasks may be asynchronous, and so is what their module does: Atomics.wait() would freeze it.
      atomics: 'disabled',
      recordTiming: false,
      niceIncrement: SETS_OWN_NICENESS ? 0 : niceIncrement,
      workerData: {
        plan,
        niceIncrement: SETS_OWN_NICENESS ? niceIncrement : 0,
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
      // At once, before piscina starts another: the pool decides whether there is to be one.
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

  /** Its call is over. It goes on to the one that it was sent ahead. */
  #goOn(): void {
    this.#isBusy = false;
    this.since = performance.now();
    const ahead = this.#ahead;
    if (ahead === undefined) return;
    this.#ahead = undefined;
    // A thread that ends may still have begun it.
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

  /** Ends the call that runs, at the price of the thread. */
  #abort(): void {
    const ahead = this.#ahead;
    // If the next call has begun, this one has ended, and its result is on its way.
    if (ahead !== undefined && !this.#takeBack(ahead)) return;
    ahead?.events.returned();
    this.end();
    this.events.lost();
  }
}
