import type { IncomingMessage } from 'node:http';
import { callSites } from '../../contract/errors/call-sites.js';
import type { BlockCause } from '../../contract/snapshot/index.js';
import { isOpenEventStream } from '../http/event-stream.js';
import type { RequestTracker } from '../http/request-tracker.js';
import {
  ASKED_AT,
  BLOCK_MS,
  FAST_MS,
  IS_FAST,
  LATE_FACTOR,
  MAIN_BEATS,
  PLACES,
  THREAD_TICKS,
} from './beat-memory.js';

/** The fast beat ends if no request was answered since the last check and none is in flight. */
const BEATS_PER_CHECK = 1_000 / FAST_MS;

/** Read now, because the fake clock of a test of the app replaces it by a function without a result. */
const readUtilization = performance.eventLoopUtilization.bind(performance);

/** Frames that are read: enough to reach the handler from the bottom of most recursions. */
const MAX_FRAMES = 300;

/** A part of the time, from one fast beat to the next. */
interface Slice {
  readonly durationMs: number;
  /** The time in which the event loop waited for events. */
  readonly idleMs: number;
  /** How often the watchdog's thread ran; `undefined` without a watchdog. */
  readonly threadTicks: number | undefined;
}

/** How long the event loop was blocked in the slice, in ms; 0 if it was not. Exact to {@link FAST_MS}. */
export function blockedMsOf({ durationMs, idleMs, threadTicks }: Slice): number {
  const blockedMs = durationMs - idleMs;
  const wasStopped = threadTicks !== undefined && threadTicks * FAST_MS * LATE_FACTOR < durationMs;
  return blockedMs > BLOCK_MS && !wasStopped ? blockedMs : 0;
}

/**
 * Beats with each turn of the event loop's timers, so that a missing beat shows a block: slowly for
 * the watchdog, which looks for hangs, and fast while there are requests, to measure short blocks.
 */
export class Beat {
  readonly memory = new Int32Array(new SharedArrayBuffer(PLACES * Int32Array.BYTES_PER_ELEMENT));
  isFast = false;
  #timer: NodeJS.Timeout | undefined;
  /** The watchdog, if there is one: the interval that it expects, and how to wake it. */
  #watchdog: { readonly tickMs: number; readonly wake: () => void } | undefined;
  #sliceBegan = 0;
  #idleMs = 0;
  #threadTicks = 0;
  #beatsToCheck = 0;
  #requestsTotal = 0;
  #cause: BlockCause | undefined;

  constructor(
    private readonly tracker: Pick<RequestTracker, 'inFlight' | 'requestsTotal' | 'reports'>,
  ) {}

  /** Begins to beat for the watchdog. @param wake wakes its thread for the fast beat. */
  start(tickMs: number, wake: () => void): void {
    this.#watchdog = { tickMs, wake };
    this.#beatEvery(tickMs);
  }

  /** The watchdog is gone: from now on blocks are measured without it. */
  stop(): void {
    this.#watchdog = undefined;
  }

  /** A request has begun while the beat was slow. */
  quicken(): void {
    this.isFast = true;
    Atomics.add(this.memory, MAIN_BEATS, 1);
    this.#beatsToCheck = BEATS_PER_CHECK;
    this.#endSlice();
    this.#beatEvery(FAST_MS);
    Atomics.store(this.memory, IS_FAST, 1);
    this.#watchdog?.wake();
  }

  /**
   * Notes what runs now. Called while the event loop is blocked, by interrupting the blocking code.
   *
   * @param current the request of the current asynchronous context, if it is known.
   */
  noteCause(current: IncomingMessage | undefined): void {
    // Native code cannot be interrupted, so the question may come late, in another slice.
    if (Atomics.load(this.memory, ASKED_AT) !== Atomics.load(this.memory, MAIN_BEATS)) return;
    this.#cause =
      current === undefined
        ? { methods: methodsOnStack(), requests: this.#requests }
        : { methods: [], requests: [current] };
  }

  /** The requests in flight, the newest first. An open event stream has nothing left to compute. */
  get #requests(): IncomingMessage[] {
    return this.tracker.inFlight
      .filter(({ response }) => !isOpenEventStream(response))
      .map(({ response }) => response.req as IncomingMessage)
      .toReversed();
  }

  #beatEvery(ms: number): void {
    clearInterval(this.#timer);
    this.#timer = setInterval(this.#beat, ms).unref();
  }

  readonly #beat = (): void => {
    Atomics.add(this.memory, MAIN_BEATS, 1);
    if (!this.isFast) return;
    const blockedMs = blockedMsOf(this.#endSlice());
    if (blockedMs > 0) {
      const cause = this.#cause ?? { methods: [], requests: this.#requests };
      this.tracker.reports.observer?.blocked(blockedMs, cause);
    }
    this.#cause = undefined;
    this.#beatsToCheck -= 1;
    if (this.#beatsToCheck === 0) this.#check();
  };

  #endSlice(): Slice {
    const [began, idleMs, ticks] = [this.#sliceBegan, this.#idleMs, this.#threadTicks];
    this.#sliceBegan = performance.now();
    this.#idleMs = readUtilization().idle;
    this.#threadTicks = Atomics.load(this.memory, THREAD_TICKS);
    return {
      durationMs: this.#sliceBegan - began,
      idleMs: this.#idleMs - idleMs,
      threadTicks: this.#watchdog && this.#threadTicks - ticks,
    };
  }

  #check(): void {
    this.#beatsToCheck = BEATS_PER_CHECK;
    const { requestsTotal } = this.tracker;
    const isUsed = requestsTotal !== this.#requestsTotal || this.#requests.length > 0;
    this.#requestsTotal = requestsTotal;
    if (isUsed) return;
    this.isFast = false;
    Atomics.store(this.memory, IS_FAST, 0);
    clearInterval(this.#timer);
    if (this.#watchdog !== undefined) this.#beatEvery(this.#watchdog.tickMs);
  }
}

/** `Class.method` of the functions on the stack, innermost first, and of those that wait for them. */
function methodsOnStack(): string[] {
  // Not the text of the stack: with source maps it may take longer than the block.
  return callSites(MAX_FRAMES, methodsOnStack).map(
    (site) => `${site.getTypeName()}.${site.getFunctionName()}`,
  );
}
