/** The facts that a leader gets. Times are of `Date.now()`. */
export interface Leading {
  /** Whether this process did not lead just before. */
  readonly fresh: boolean;
  /** Jobs that were due before this time belong to an earlier leader; `undefined` if nobody led before. */
  readonly since: number | undefined;
  /** Names of jobs that still run in other workers. */
  readonly busy: readonly string[];
  /** Names of jobs that run once in the life of the cluster and have begun. */
  readonly done: readonly string[];
}

/** Whether this process runs the jobs that only one process may run. */
export interface LeaderRole {
  /** Whether it leads now. The first read makes the primary report it from then on. */
  readonly leads: boolean;
  /** Whether this process should now begin a job that was due at `due` (`Date.now()`). */
  owns(due: number): boolean;
  /** Calls `told` when this process begins to lead, and several times a second while it leads. */
  follow(told: (leading: Leading) => void): void;
  /**
   * Reports the running jobs. `done`: the name of a job that is to run once.
   *
   * @param of the owner of the jobs: each Nest app of the process has its own jobs.
   */
  tellRunning(of: object, running: readonly string[], done?: string): void;
}
