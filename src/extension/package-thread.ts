/** The `workerData` of a package's thread, set by the primary. The thread posts a message once it listens. */
export interface PackageThreadData {
  /** The path of the unix socket on which the thread listens. Only this user can access its directory. */
  readonly path: string;
  /** Whether an earlier run of this thread has ended. */
  readonly restarted: boolean;
}
