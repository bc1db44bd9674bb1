/** The name and place by which a thread finds a task. No field comes from a request. */
export interface PlannedTask {
  readonly name: string;
  /** Absolute path of the file with the class. */
  readonly file: string;
  readonly className: string;
  /** Whether the instance comes from `offload.module`, because Nest injects something into it. */
  readonly injected: boolean;
}

/** The main file of an app, which starts nothing in a thread. */
export interface MainFile {
  readonly file: string;
  /** Whether the function passed to `bootstrap()` only imports a file. */
  readonly importsApp: boolean;
}

/** All tasks that a thread can run. The number of a task is its index in `tasks`. */
export interface ThreadPlan {
  readonly tasks: readonly PlannedTask[];
  /** The file that calls `forRoot()` with `offload.module`. */
  readonly module: { readonly name: string; readonly file: string | undefined } | undefined;
  /** `undefined` if the main file would start another app in a thread. */
  readonly main: MainFile | undefined;
}

/** The data with which a thread starts. */
export interface ThreadSettings {
  readonly plan: ThreadPlan;
  /** The directory of Node's compile cache; `undefined` without one. */
  readonly compileCache: string | undefined;
}
