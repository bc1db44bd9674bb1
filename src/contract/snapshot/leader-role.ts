/** What it means to lead. Times are of `Date.now()`. */
export interface Leading {
  /** It did not lead right before. */
  readonly fresh: boolean;
  /** What was due up to then is not its own; `undefined` where nobody led before. */
  readonly since: number | undefined;
  /** Names of jobs that still run in other workers. */
  readonly busy: readonly string[];
  /** Names of jobs that are to run once in the life of the cluster, and have begun. */
  readonly done: readonly string[];
}

/** Whether this process runs what one alone is to run. */
export interface LeaderRole {
  /** Whether it leads now. The first question has the primary tell it from then on. */
  readonly leads: boolean;
  /** Whether what was due then (`Date.now()`) is for this process to begin now. */
  owns(due: number): boolean;
  /** Calls `told` when this process comes to lead, and some times a second while it does. */
  follow(told: (leading: Leading) => void): void;
  /**
   * What it runs now. `done`: the name of one that is to run once.
   *
   * @param of whose jobs these are: each Nest app of the process has its own.
   */
  tellRunning(of: object, running: readonly string[], done?: string): void;
}

/** `skipped`: it was still running in another worker, and runs once it has ended there. */
export const JOB_OUTCOMES = ['succeeded', 'failed', 'skipped'] as const;
export type JobOutcome = (typeof JOB_OUTCOMES)[number];
