import type {
  Metrics,
  MetricsClient,
  MetricsContribution,
  WorkerIdentity,
} from '../contract/snapshot/types.js';
import { currentLink } from '../contract/snapshot/current-link.js';

export type { Metrics, MetricsClient, MetricsContribution, WorkerIdentity };
export type { PackageThreadData } from './package-thread.js';
export {
  REMOTE_RUNNER,
  type RemoteRunner,
  type RemoteSituation,
} from '../offload/run/remote-runner.js';
export type { Task } from '../offload/run/runner.interface.js';
export type { TaskError } from '../offload/task/task-error.js';

/** The parts of this process that `@nestjs-cluster/*` packages use. Other packages must not rely on them. */
export interface Extension {
  readonly identity: WorkerIdentity;
  /** The desired number of worker processes. */
  readonly workers: number;
  /**
   * Finds a package's thread, which runs the package's `dist/thread.cjs` in the primary.
   *
   * @param name begins with `@nestjs-cluster/`.
   * @returns a function that asks the primary for the path of the thread's socket. The first call
   *   in the cluster starts the thread. The promise rejects if the thread cannot run. `undefined`
   *   without a primary.
   */
  thread(name: string): (() => Promise<string>) | undefined;
  /**
   * Sets clients that a drain gradually sends to other workers. The drain waits until all have left.
   *
   * @param present returns the current clients.
   * @param leave asks one client to leave.
   */
  onDrain<T>(present: () => readonly T[], leave: (one: T) => void): void;
  /** Sets a function that returns whether a drain must wait. Only work begun before `before` (monotonic ms) counts. */
  onDrainTasks(pending: (before: number) => boolean): void;
  /** Adds metrics if the app has `/metrics`. */
  metrics(contribution: MetricsContribution): void;
  /** Logs a warning in one line, once for all workers. `warnings.ignore` silences it by its `name`. */
  warn(message: string, name?: string): void;
  /** Reports that the app cannot start. */
  refuseStart(error: unknown): void | Promise<void>;
}

/** The parts of this process that packages use. @returns `undefined` if `bootstrap()` was not called here. */
export function extension(): Extension | undefined {
  const link = currentLink();
  return (
    link && {
      identity: link.identity,
      workers: link.workers,
      thread: (name) => link.thread(name),
      onDrain: (present, leave) => link.onDrain(present, leave),
      onDrainTasks: (pending) => link.provideTasks(pending),
      metrics: (contribution) => link.contributeMetrics(contribution),
      warn: (message, name) => link.warn(message, name),
      refuseStart: (error) => link.reportBootFailure(error),
    }
  );
}

/** Makes a drain ignore this WebSocket, because the caller closes it. */
export function closedByOwner(socket: object): void {
  Reflect.set(socket, Symbol.for('nestjs-cluster.closed-by-owner'), true);
}
