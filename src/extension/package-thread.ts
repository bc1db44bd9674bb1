/** The data with which the primary starts the thread of a package (`workerData`). */
export interface PackageThreadData {
  /** The path of the unix socket on which the thread listens. Only this user can enter its directory. */
  readonly path: string;
  /** A worker that connects must show this token. */
  readonly token: string;
  /** Identifies this run of the thread: another instance has lost the state of the former. */
  readonly instance: string;
  /** Whether an earlier run of this thread has ended. */
  readonly restarted: boolean;
  /** A counter that the thread increments every 250 ms. If it stands still, the thread hangs and is ended. */
  readonly pulse: Int32Array;
}

/** The messages of the thread to the primary (`parentPort`). */
export type PackageThreadMessage =
  { readonly type: 'listening' } | { readonly type: 'failed'; readonly message: string };
