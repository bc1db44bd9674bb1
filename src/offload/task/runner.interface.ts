import type { CarriedContexts } from './carry-context.js';
import type { Place } from './parcel.js';
import type { TaskError } from './task-error.js';
import type { RunTimes } from './trace-context.js';

/** One call as its runner gets it. */
export interface RunRequest {
  /** Number of the task in the plan. */
  readonly task: number;
  readonly args: readonly unknown[];
  readonly contexts: CarriedContexts | undefined;
}

/** How a call ended in the thread. */
export type RunResult = (
  | {
      readonly ok: true;
      readonly value: unknown;
      /** The parts of the value that were Buffers. The value itself is the first of a list. */
      readonly buffers: readonly Place[];
    }
  | { readonly ok: false; readonly error: TaskError }
) & {
  /** Set for a traced call. */
  readonly ran?: RunTimes;
};

/** It ended well. */
export type Completed = RunResult & { ok: true };

/** A call that is running. */
export interface Run {
  /** Rejects when the thread is lost, or the arguments cannot be copied. */
  readonly result: Promise<RunResult>;
  /** Ends it, as far as that can be done. */
  readonly abort: () => void;
}

/** The fate of a call that was sent to a busy thread. */
export interface OfferEvents {
  /** It runs. */
  begun(): void;
  /** Its thread ends before it has begun: it waits as it did before. */
  returned(): void;
}

/** A call that waits in the thread which is to run it. Once it has begun, it is a run. */
export interface Offer extends Run {
  /** @returns whether it had not begun. It never will then, and nothing more is told of it. */
  readonly takeBack: () => boolean;
}

/** The place where calls run: threads, or the event loop. */
export interface Runner {
  /** Calls that can run at a time. 0: none ever will, as far as is known. */
  readonly size: number;
  /** Threads there are. */
  readonly threads: number;
  /** Threads that are not ready, and come when calls wait: those who wait for one take no place in the queue. */
  readonly spare: number;
  /** The time to start a new one, in ms. */
  readonly startMs: number;
  /** Calls that could begin now. */
  readonly idle: number;
  /** So many calls wait. */
  expect(waiting: number): void;
  run(request: RunRequest): Run;
  /**
   * Sends a call ahead to the thread that is likely to be free first, so that it begins the moment
   * it is.
   *
   * @returns `undefined` where no thread takes it.
   */
  offer(request: RunRequest, events: OfferEvents): Offer | undefined;
  close(): Promise<void>;
}
