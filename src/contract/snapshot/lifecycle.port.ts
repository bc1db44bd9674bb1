import type { ClusterSnapshot } from './cluster-snapshot.js';

/** An app's verdict on its own health. */
export interface HealthVerdict {
  readonly healthy: boolean;
  /** The problem, in words. */
  readonly detail: string | null;
}

/** Threads for which the start of the process does not wait. */
export interface ThreadsOfProcess {
  /**
   * Has one thread load all tasks.
   *
   * @throws ClusterConfigurationError if a task cannot be loaded.
   */
  verify(): Promise<void>;
  /** Starts the threads that always run. */
  keep(): void;
}

/** The life of this process, from the boot of its app to the drain. */
export interface LifecyclePort {
  /** Whether this process still wants traffic: false from the start of a drain. */
  readonly accepting: boolean;
  /** Tells that an app serves, on this HTTP server if it has one. A process may have several apps. */
  attach(server: unknown): void;
  /** Tells that one of these apps is closing. */
  detach(): void;
  /** Paths to print once the cluster is up. */
  announceEndpoints(paths: readonly string[]): void;
  /** Sets the health check by which the primary tests this process before it relies on it, and how many workers must be ready. */
  provideHealth(check: () => Promise<HealthVerdict>, minReady: ClusterSnapshot['minReady']): void;
  /**
   * Sets the function that tells whether there is work from before a time (monotonic ms) for which
   * a drain should wait, in addition to requests. It is called from the beginning of the drain on.
   */
  provideTasks(pending: (before: number) => boolean): void;
  /**
   * Makes clients go to other workers after this process has stopped accepting, no faster than the
   * other workers accept them. The drain waits until all clients have left.
   *
   * @param present returns the current clients: more may come until the drain has closed them all.
   * @param leave tells one of them to leave.
   */
  onDrain<T>(present: () => readonly T[], leave: (one: T) => void): void;
  /**
   * Registers the threads of this process, which are verified and started once it serves.
   *
   * @returns false if nothing will do that.
   */
  provideThreads(threads: ThreadsOfProcess): boolean;
  /** Asks for another process in the place of this one, because something in it cannot be stopped or repaired. */
  requestReplacement(reason: string): void;
  /** Reports that the app cannot start: Nest would end the process before anybody sees the error. */
  reportBootFailure(error: unknown): void | Promise<void>;
}
