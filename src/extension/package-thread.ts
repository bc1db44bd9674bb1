/** The data with which the primary starts the thread of a package (`workerData`). The thread posts a message once it listens. */
export interface PackageThreadData {
  /** The path of the unix socket on which the thread listens. Only this user can enter its directory. */
  readonly path: string;
  /** Whether an earlier run of this thread has ended. */
  readonly restarted: boolean;
}
