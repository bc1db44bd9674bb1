/** A `@CpuBound()` method of this app, with everything that is in force for it. */
export interface Task {
  /** Unique; label of its metrics. */
  readonly name: string;
  /** `Class.method`. */
  readonly functionName: string;
  /** Its place in the plan of the threads. */
  readonly index: number;
  readonly timeoutMs: number;
  readonly queueTimeoutMs: number;
  readonly coalesce: boolean;
  readonly abortOnDisconnect: boolean;
  /** The queue whose consumers run the task. */
  readonly queue: string | undefined;
  /** Names of the method's parameters, as far as they are known: for messages. */
  readonly parameters: readonly string[];
}

/** How a call ended. `coalesced`: it was answered by another call's result. */
export const TASK_OUTCOMES = [
  'completed',
  'failed',
  'coalesced',
  'rejected',
  'queue_timeout',
  'timeout',
  'aborted',
  'thread_lost',
] as const;
export type TaskOutcome = (typeof TASK_OUTCOMES)[number];

/** Told of each call: for metrics. Must be cheap and must not throw. */
export interface TaskObserver {
  /** It begins, and had waited for so long. */
  began(task: Task, waitedMs: number): void;
  /** It ran for so long, however it ended. */
  ran(task: Task, ms: number): void;
  /** Once for each caller. */
  ended(task: Task, outcome: TaskOutcome): void;
}

/** The value if nothing is measured. */
export const UNOBSERVED: TaskObserver = { began() {}, ran() {}, ended() {} };
