import type { Class } from '../../contract/options/module.js';
import type { TaskError } from '../task/task-error.js';
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

/** The parts of this process that a remote runner needs. */
export interface RemoteSituation {
  /** The tasks of the app that have a queue. */
  readonly tasks: readonly Task[];
  /** Finds the task of a method; `undefined` if it is not one of the app's. */
  readonly find: (type: Class, method: string) => Task | undefined;
  /** Runs a call in this process. */
  readonly local: Submitter;
  /** Number of calls that this process can run at the same time. */
  readonly threads: number;
  /** The caller's trace, which a call carries to its method. */
  readonly currentTrace: () => TraceHeaders | undefined;
  /** A thrown value as plain data, and back. */
  readonly describeError: (thrown: unknown) => TaskError;
  readonly restoreError: (error: TaskError) => unknown;
}

/** Lets any machine run the calls of methods with a `queue`. `@nestjs-cluster/bullmq` provides it. */
export interface RemoteRunner extends Submitter {
  /** Must not wait for more than a second for a server that is down. @throws ClusterConfigurationError for wrong options. */
  start(situation: RemoteSituation): Promise<void>;
  /** Ends within a bounded time. */
  close(): Promise<void>;
}

/** Injection token. A registered symbol, so that two copies of this package find the same runner. */
export const REMOTE_RUNNER = Symbol.for('nestjs-cluster.remote-runner');
