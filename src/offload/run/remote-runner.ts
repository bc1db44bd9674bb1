import type { Class } from '../../contract/options/module.js';
import type { TaskError } from '../task/task-error.js';
import type { TraceHeaders } from '../task/trace-context.js';
import type { Submitter, Task } from './runner.interface.js';

/** The parts of this process that a remote runner uses. */
export interface RemoteSituation {
  /** The tasks with a `queue`. */
  readonly tasks: readonly Task[];
  /** Finds the task of a method. `undefined` if the app has no such task. */
  readonly find: (type: Class, method: string) => Task | undefined;
  /** Runs a call in this process. */
  readonly local: Submitter;
  /** Maximum number of calls that run in this process at the same time. */
  readonly threads: number;
  /** The trace that a call passes to its method. */
  readonly currentTrace: () => TraceHeaders | undefined;
  /** Converts a thrown value to plain data. */
  readonly describeError: (thrown: unknown) => TaskError;
  readonly restoreError: (error: TaskError) => unknown;
}

/** Runs calls of methods with a `queue` on any machine. `@nestjs-cluster/bullmq` implements it. */
export interface RemoteRunner extends Submitter {
  /** Must wait at most a second for an unreachable server. @throws ClusterConfigurationError for invalid options. */
  start(situation: RemoteSituation): Promise<void>;
  /** Must resolve even if the server is unreachable. */
  close(): Promise<void>;
}

/** Injection token. Symbol.for(), so that two copies of this package find the same runner. */
export const REMOTE_RUNNER = Symbol.for('nestjs-cluster.remote-runner');
