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

/** Observes each call, for metrics. Must be cheap and must not throw. */
export interface TaskObserver {
  /** The call begins, after it has waited for `waitedMs`. */
  began(task: Task, waitedMs: number): void;
  /** The call ran for `ms`, whether it succeeded or failed. */
  ran(task: Task, ms: number): void;
  /** The call has ended. */
  ended(task: Task, outcome: TaskOutcome): void;
}

/** The observer if nothing is measured. */
export const UNOBSERVED: TaskObserver = { began() {}, ran() {}, ended() {} };

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
