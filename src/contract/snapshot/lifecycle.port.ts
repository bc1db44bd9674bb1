import type { ClusterSnapshot } from './cluster-snapshot.js';

/** An app's verdict on its own health. */
export interface HealthVerdict {
  readonly healthy: boolean;
  /** The problem, in words. */
  readonly detail: string | null;
}

/** The threads of a process. The start of the process does not wait for them. */
export interface ThreadsOfProcess {
  /**
   * Checks that a thread can load all tasks.
   *
   * @throws ClusterConfigurationError if a task cannot be loaded.
   */
  verify(): Promise<void>;
  /** Starts the threads that keep running (`minThreads`). */
  keep(): void;
  /** The share of the time since the last call of this method in which the threads were busy, 0..1. */
  utilization(): number;
}

/** The life of this process, from the boot of its app to the drain. */
export interface LifecyclePort {
  /** Whether this process accepts new requests: false from the start of a drain. */
  readonly accepting: boolean;
  /** Reports that an app serves, with its HTTP server if it has one. A process may have several apps. */
  attach(server: unknown): void;
  /** Reports that an app passed to `attach()` is closing. */
  detach(): void;
  /** Has work done once the process serves and its event loop is idle: work that no first request needs. */
  afterStart(work: () => unknown): void;
  /** Sets the paths of endpoints to print once the cluster is up. */
  announceEndpoints(paths: readonly string[]): void;
  /** Sets the health check by which the primary tests a new process, and how many workers must be ready. */
  provideHealth(check: () => Promise<HealthVerdict>, minReady: ClusterSnapshot['minReady']): void;
  /**
   * Sets a function that says whether a drain must wait for other work than requests. `before` is a
   * time in monotonic ms: only work that began earlier counts. Called during a drain.
   */
  provideTasks(pending: (before: number) => boolean): void;
  /**
   * Sets clients that a drain sends to other workers once this process has stopped accepting. They
   * leave no faster than the other workers accept them. The drain waits until all have left.
   *
   * @param present returns the current clients. More clients may come until the drain has closed
   * all.
   * @param leave asks one client to leave.
   */
  onDrain<T>(present: () => readonly T[], leave: (one: T) => void): void;
  /**
   * Registers the threads of this process, which are verified and started once the process serves.
   *
   * @returns false if this process does not verify and start them.
   */
  provideThreads(threads: ThreadsOfProcess): boolean;
  /** Asks the primary to replace this process, because something in it cannot be stopped or repaired. */
  requestReplacement(reason: string): void;
  /** Reports that the app cannot start. Without this call, Nest would end the process without a report. */
  reportBootFailure(error: unknown): void | Promise<void>;
}
