import type { TraceHeaders } from '../task/trace-context.js';

/** A `@CpuBound()` method of this app, with its options and the defaults applied. */
export interface Task {
  /** Unique name, which is the label `task` of metrics. */
  readonly name: string;
  /** Index of the task in the plan of the threads. */
  readonly index: number;
  readonly timeoutMs: number;
  /** Maximum wait for a thread, in ms. */
  readonly queueTimeoutMs: number;
  /** Whether a running call ends with its thread when the caller's client disconnects. */
  readonly abortOnDisconnect: boolean;
  /** The remote queue whose consumers run the task, if there is one. */
  readonly queue: string | undefined;
}

/** How a call ended. */
export const TASK_OUTCOMES = [
  'completed',
  'failed',
  'rejected',
  'queue_timeout',
  'timeout',
  'aborted',
  'thread_lost',
] as const;
export type TaskOutcome = (typeof TASK_OUTCOMES)[number];

/** Watches for the disconnect of a waiting client. @returns a function that ends the watch. */
export type Watch = (gone: () => void) => () => void;

/** Accepts calls of tasks, and returns their results. */
export interface Submitter {
  /** Resolves with the result. Rejects with the error of the task, or an exception of this package. */
  submit(
    task: Task,
    args: readonly unknown[],
    trace: TraceHeaders | undefined,
    watch?: Watch,
  ): Promise<unknown>;
}

/** The place where calls run: threads, or the event loop. */
export interface Runner extends Submitter {
  /** Number of threads; 0 if calls run on the event loop. */
  readonly threads: number;
  /** Refuses further calls and ends the others. */
  close(): Promise<void>;
}
