/** A task as a thread finds it: by file, class and method. Nothing in it comes from a request. */
export interface PlannedTask {
  readonly name: string;
  /** Absolute path. */
  readonly file: string;
  readonly className: string;
  readonly method: string;
  /** Its instance comes from the module: the constructor asks for something. */
  readonly injected: boolean;
}

/** The data with which a thread starts. */
export interface ThreadSettings {
  readonly plan: ThreadPlan;
  /** By how much it becomes nicer once it has loaded. Only on Linux. */
  readonly niceIncrement: number;
}

/** All that a thread is to run; numbers of tasks are places in `tasks`. */
export interface ThreadPlan {
  readonly tasks: readonly PlannedTask[];
  /** The file that calls `forRoot()` with `offload.module`. */
  readonly module: { readonly name: string; readonly file: string | undefined } | undefined;
}
