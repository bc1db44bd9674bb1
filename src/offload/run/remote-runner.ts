import type { Class } from '../../contract/options/module.js';
import type { TaskError } from '../task/task-error.js';
import type { TraceHeaders } from '../task/trace-context.js';
import type { Submitter, Task } from './runner.interface.js';

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
