import type { Class } from '../../contract/options/module.js';
import type { CarriedContexts } from '../task/carry-context.js';
import type { Place } from '../task/buffers.js';
import type { Instance } from '../task/instances.js';
import type { Task } from '../task/task.js';
import type { TaskError } from '../task/task-error.js';

/** Watches for the disconnect of a waiting client. @returns a function that ends the watch. */
export type Watch = (gone: () => void) => () => void;

/** Accepts calls of tasks, and returns their results. */
export interface Submitter {
  /** Resolves with the result. Rejects with the error of the task, or an exception of this package. */
  submit(
    task: Task,
    args: readonly unknown[],
    contexts: CarriedContexts | undefined,
    watch?: Watch,
  ): Promise<unknown>;
}

/** The state of the calls of a process. */
export interface OffloadSnapshot {
  /** Number of threads; 0 if nothing is offloaded or all calls run inline. */
  readonly threads: number;
  /** Number of running calls. */
  readonly running: number;
  /** Number of waiting calls. */
  readonly queueSize: number;
}

/** The place where calls run: threads, or the event loop. */
export interface Runner extends Submitter {
  /** Number of calls that can run at the same time. */
  readonly size: number;
  snapshot(): OffloadSnapshot;
  /** Whether a call that has not ended was made before this time (monotonic ms). */
  hasCallFrom(before: number): boolean;
  /** Refuses further calls and ends the others. */
  close(): Promise<void>;
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
