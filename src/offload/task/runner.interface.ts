import type { CarriedContexts } from './carry-context.js';
import type { Class } from '../../contract/options/module.js';
import type { Instance } from './instances.js';
import type { Place } from './parcel.js';
import type { TaskError } from './task-error.js';

/** One call in the form in which a runner gets it. */
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
      /** The parts of `[value]` that were Buffers. */
      readonly buffers: readonly Place[];
      /** The parts of `value` that were instances of classes. */
      readonly instances?: readonly Instance[];
    }
  | { readonly ok: false; readonly error: TaskError }
) & {
  /** The classes of the result or the error, by their number, as far as this thread knows them. */
  readonly types?: readonly (Class | undefined)[];
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
  run(request: RunRequest): Run;
  close(): Promise<void>;
}
