import type { TraceHeaders } from '../task/trace-context.js';

/** A `@CpuBound()` method of this app. Its options include the defaults. */
export interface Task {
  /** Unique in the app. The value of the label `task` in metrics. */
  readonly name: string;
  /** Index in {@link ThreadPlan.tasks}. */
  readonly index: number;
  readonly timeoutMs: number;
  /** Maximum wait for a thread, in ms. */
  readonly queueTimeoutMs: number;
  /** Whether a running call and its thread are terminated when the client disconnects. */
  readonly abortOnDisconnect: boolean;
  /** The remote queue of the task. `undefined` if the task runs in this process. */
  readonly queue: string | undefined;
}

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

/** Calls `gone` when the waiting client disconnects. @returns a function that stops watching. */
export type Watch = (gone: () => void) => () => void;

export interface Submitter {
  /** Resolves with the task's result. Rejects with the task's error or an exception of this package. */
  submit(
    task: Task,
    args: readonly unknown[],
    trace: TraceHeaders | undefined,
    watch?: Watch,
  ): Promise<unknown>;
}

/** Runs calls in threads or on the event loop. */
export interface Runner extends Submitter {
  /** Number of threads. 0 if calls run on the event loop. */
  readonly threads: number;
  /** Rejects new and waiting calls, and aborts running calls. */
  close(): Promise<void>;
}
