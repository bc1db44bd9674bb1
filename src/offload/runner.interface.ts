import type { CarriedContexts } from './carry-context.js';
import type { Place } from './parcel.js';
import type { TaskError } from './task-error.js';

/** One call as its runner gets it. */
export interface RunRequest {
  /** Number of the task in the plan. */
  readonly task: number;
  readonly args: readonly unknown[];
  readonly contexts: CarriedContexts | undefined;
}

/** A request on its way to a thread. */
export interface SentRequest extends RunRequest {
  /** Which of the arguments were Buffers. */
  readonly buffers: readonly Place[];
}

/** How a call ended in the thread. */
export type RunResult =
  | {
      readonly ok: true;
      readonly value: unknown;
      /** What of the value was a Buffer; the value stands for the first of a list. */
      readonly buffers: readonly Place[];
      readonly contexts: CarriedContexts | undefined;
    }
  | { readonly ok: false; readonly error: TaskError };

/** It ended well. */
export type Completed = RunResult & { ok: true };

/** A call that is running. */
export interface Run {
  /** Rejects when the thread is lost, or the arguments cannot be copied. */
  readonly result: Promise<RunResult>;
  /** Ends it, as far as that can be done. */
  abort(): void;
}

/** Where calls run: threads, or the event loop. */
export interface Runner {
  /** Calls that can run at a time. 0: none ever will, as far as is known. */
  readonly size: number;
  /** What it takes to start one anew, in ms. */
  readonly startMs: number;
  /** Calls that could begin now. */
  readonly idle: number;
  run(request: RunRequest): Run;
  close(): Promise<void>;
}
