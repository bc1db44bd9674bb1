import type { CarriedContexts } from './carry-context.js';
import type { Place } from './parcel.js';
import type { Elapsed } from './stopwatch.js';
import type { Task } from './task.js';
import type { TaskError } from './task-error.js';
import type { RunTimes } from './trace-context.js';

/** One call in the form in which a runner gets it. */
export interface RunRequest {
  /** Number of the task in the plan. */
  readonly task: number;
  readonly args: readonly unknown[];
  readonly contexts: CarriedContexts | undefined;
  /** Whether a thread is to say how long the body took. */
  readonly timed?: boolean;
}

/** How a call ended in the thread. */
export type RunResult = (
  | {
      readonly ok: true;
      readonly value: unknown;
      /** The parts of `[value]` that were Buffers. */
      readonly buffers: readonly Place[];
    }
  | { readonly ok: false; readonly error: TaskError }
) & {
  /** Set if the call is traced. */
  readonly ran?: RunTimes;
  /** How long the body took. Set if the request asks for it. */
  readonly elapsed?: Elapsed;
  /** CPU time of the thread since its last call, in ms; missing if it is not known. */
  readonly cpuMs?: number;
};

/** The result of a call that succeeded. */
export type Completed = RunResult & { ok: true };

/** A call that is running. */
export interface Run {
  /** Rejects when the thread is lost, or the arguments cannot be copied. */
  readonly result: Promise<RunResult>;
  /** Ends the call, if the runner can end calls. */
  readonly abort: () => void;
}

/** The events of a call that was sent ahead to a busy thread. */
export interface OfferEvents {
  /** The thread has begun the call. */
  begun(): void;
  /** The thread ends without having begun the call, which must wait again. */
  returned(): void;
}

/** A call that waits in a thread. Once the thread has begun it, it is a run. */
export interface Offer extends Run {
  /** @returns true if the call had not begun. In that case the call never begins, and no event follows. */
  readonly takeBack: () => boolean;
}

/** The place where calls run: threads, or the event loop. */
export interface Runner {
  /** Number of calls that can run at the same time. 0 if no call can run, now or later. */
  readonly size: number;
  /** Number of threads. */
  readonly threads: number;
  /**
   * Number of further threads that start when calls wait. Calls that wait for these threads do not
   * count against the queue's limit.
   */
  readonly spare: number;
  /** Time to start a new thread, in ms. */
  readonly startMs: number;
  /** Number of calls that could begin now. */
  readonly idle: number;
  /** Reports the number of waiting calls, so that threads are started. */
  expect(waiting: number): void;
  /** Whether the current code runs in a task on the event loop. Calls from within it run directly, as in a thread. */
  readonly isInside?: boolean;
  /** The runner for calls that run on the event loop without a thread; `undefined` if they need a thread. */
  inlineFor?(task: Task): Pick<Runner, 'run'> | undefined;
  run(request: RunRequest): Run;
  /**
   * Sends a call ahead to the thread that will probably be free first. Once free, that thread
   * begins the call at once.
   *
   * @returns `undefined` if no thread takes the call.
   */
  offer(request: RunRequest, events: OfferEvents): Offer | undefined;
  close(): Promise<void>;
}
