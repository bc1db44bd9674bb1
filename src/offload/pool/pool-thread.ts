import { setTimeout as delay } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import type { Piscina } from 'piscina';
import { besideThis } from '../../contract/process/own-file.js';
import { environmentOfThread } from '../../contract/process/telemetry.js';
import type { Niceness } from './niceness.js';
import { contentsOf } from '../task/parcel.js';
import type { Offer, OfferEvents, Run, RunRequest, RunResult } from '../task/runner.interface.js';
import { NO_PLACE, type Offers } from '../thread/offers.js';
import type { ThreadPlan, ThreadSettings } from '../thread/plan.js';
import type { ThreadMessage, ThreadReport } from '../thread/thread-host.js';

/** The program of a thread. */
export const ENTRY = besideThis('offload/thread/thread-entry.js') ?? 'thread-entry.js';

/** For `offload.module` to close. */
const CLOSE_MS = 1_000;

/** A call that runs, one that is offered, one that was taken back, and the word to close. */
const MAX_MESSAGES = 4;

export interface ThreadOptions extends Niceness {
  /** `Infinity` = Node's own limit. */
  readonly heapLimitBytes: number;
}

/** What is told of a thread. */
export interface ThreadEvents {
  /** It has ended after it was ready, and nobody had asked it to. */
  lost(): void;
  /** It ended by an error that no call is told of. */
  died(error: unknown): void;
  /** It may take an offer again. */
  changed(): void;
}

/** `starting → ready → ended`. Only a ready thread is given calls. */
type ThreadState = 'starting' | 'ready' | 'ended';

interface AheadCall {
  readonly ticket: number;
  readonly events: OfferEvents;
}

/** One thread: it runs one call, and may hold the next one. */
export class PoolThread {
  #state: ThreadState = 'starting';
  /** Its report once it has loaded its tasks, or cannot. Rejects if it ends over that. */
  readonly report: Promise<ThreadReport>;
  /** Resolves when there is nothing left of it. */
  readonly exited: Promise<void>;
  /** Since when it runs its call, or has none; monotonic ms. */
  since = performance.now();
  #isBusy = false;
  #piscina: Piscina | undefined;
  readonly #opened: Promise<Piscina>;
  #resolveExited!: () => void;
  #ahead: AheadCall | undefined;
  /** It was offered a call and has neither begun it nor, where that was taken back, come to see so. */
  #holdsOffer = false;
  #tickets = 0;

  constructor(
    plan: ThreadPlan,
    options: ThreadOptions,
    private readonly offers: Offers,
    private readonly place: number,
    private readonly events: ThreadEvents,
  ) {
    this.exited = new Promise((resolve) => (this.#resolveExited = resolve));
    const { niceOnceLoaded } = options;
    this.#opened = this.#open({ plan, offers: offers.memory, place, niceOnceLoaded }, options);
    this.report = this.#opened.then(() => this.#post({ type: 'check' }) as Promise<ThreadReport>);
    this.#opened.catch(() => this.#resolveExited()); // there is nothing to exit
  }

  get state(): ThreadState {
    return this.#state;
  }

  get isIdle(): boolean {
    return this.#state === 'ready' && !this.#isBusy;
  }

  /** Whether the next call may be handed to it while it runs another. */
  get takesOffer(): boolean {
    return this.#state === 'ready' && this.#isBusy && !this.#holdsOffer && this.place !== NO_PLACE;
  }

  /** It can do its work. */
  becomeReady(): void {
    this.#state = 'ready';
    this.since = performance.now();
  }

  run(request: RunRequest): Run {
    const { moved, buffers } = contentsOf(request.args);
    this.#goOn();
    const result = this.#post({ type: 'run', ...request, buffers }, moved).then(
      (value) => this.#ended(value),
      (error: unknown) => this.#failed(error),
    );
    return { result, abort: () => this.abort() };
  }

  offer(request: RunRequest, order: number, events: OfferEvents): Offer {
    const { buffers } = contentsOf(request.args);
    const ahead: AheadCall = { ticket: ++this.#tickets, events };
    this.#ahead = ahead;
    this.#holdsOffer = true;
    // First the offer, then what it is about: the thread waits for that.
    this.offers.make(this.place, ahead.ticket, order);
    const result = this.#post({ type: 'run', ...request, buffers, ticket: ahead.ticket }).then(
      (value) => {
        if (value !== undefined) return this.#ended(value);
        this.#holdsOffer = false;
        this.events.changed();
        return value as never; // it was taken back: nobody listens
      },
      (error: unknown) => this.#failed(error),
    );
    result.catch(() => {}); // a follower from its beginning reports it, if there is one
    return { result, abort: () => this.abort(), takeBack: () => this.#takeBack(ahead) };
  }

  /** Ends the call that runs, at the price of the thread. */
  abort(): void {
    const ahead = this.#ahead;
    // The next one has begun: so this one has ended, and its result is on its way.
    if (ahead !== undefined && !this.#takeBack(ahead)) return;
    ahead?.events.returned();
    this.end();
  }

  /** Lets its module go first. It must be idle. */
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

  async #open(settings: ThreadSettings, options: ThreadOptions): Promise<Piscina> {
    const { niceIncrement, heapLimitBytes } = options;
    // With the first thread and not before: it takes some 8 MB.
    const { Piscina } = await import('piscina');
    const env = environmentOfThread();
    // One thread each: which of them gets a call, and when one comes or goes, is decided by the pool.
    const piscina = new Piscina({
      filename: ENTRY,
      name: 'handle',
      minThreads: 1,
      maxThreads: 1,
      concurrentTasksPerWorker: MAX_MESSAGES,
      // Tasks may be asynchronous, and so is what their module does: Atomics.wait() would freeze it.
      atomics: 'disabled',
      recordTiming: false,
      niceIncrement,
      workerData: settings,
      ...(env && { env }),
      ...(Number.isFinite(heapLimitBytes) && {
        resourceLimits: { maxOldGenerationSizeMb: Math.floor(heapLimitBytes / 2 ** 20) },
      }),
    });
    const [worker] = piscina.threads as Worker[];
    worker!.once('exit', () => this.#resolveExited());
    piscina.on('error', (error: unknown) => this.events.died(error));
    piscina.on('workerDestroy', () => {
      if (this.#state === 'ended') return;
      const wasReady = this.#state === 'ready';
      this.#state = 'ended';
      // At once, before piscina starts another: whether there is to be one is not for it to say.
      void piscina.destroy();
      if (wasReady) this.events.lost();
    });
    this.#piscina = piscina;
    return piscina;
  }

  #post(message: ThreadMessage, transferList: readonly ArrayBuffer[] = []): Promise<unknown> {
    return this.#piscina!.run(message, { transferList: transferList as ArrayBuffer[] });
  }

  #goOn(): void {
    this.#isBusy = true;
    this.since = performance.now();
  }

  #ended(result: unknown): RunResult {
    this.#next();
    return result as RunResult;
  }

  #failed(error: unknown): never {
    this.#next();
    throw error;
  }

  /** Its call is over: goes on to the one that it was offered, unless an older one waits elsewhere. */
  #next(): void {
    this.#isBusy = false;
    this.since = performance.now();
    const ahead = this.#ahead;
    if (ahead === undefined) return;
    if (this.#state === 'ready') this.offers.claim(this.place);
    if (this.#takeBack(ahead)) return ahead.events.returned();
    this.#ahead = undefined;
    this.#holdsOffer = false;
    this.#goOn();
    ahead.events.begun();
  }

  #takeBack(ahead: AheadCall): boolean {
    if (this.#ahead !== ahead || !this.offers.takeBack(this.place, ahead.ticket)) return false;
    this.#ahead = undefined;
    return true;
  }
}
