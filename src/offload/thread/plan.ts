import type { CallSite } from '../task/call-site.js';

/** The name and place by which a thread finds a task. No field comes from a request. */
export interface PlannedTask {
  readonly name: string;
  /** The place of the class. */
  readonly site: CallSite;
  readonly className: string;
  /** Whether the instance comes from `offload.module`, because Nest injects something into it. */
  readonly injected: boolean;
}

/**
 * How much a thread raises its nice value, so that the event loop comes first when cores are scarce.
 * With 10, a busy thread gets about a tenth of a core that the event loop also wants.
 */
export const NICE_INCREMENT = 10;

/** The data with which a thread starts. */
export interface ThreadSettings {
  readonly plan: ThreadPlan;
  /** The directory of Node's compile cache; `undefined` without one. */
  readonly compileCache: string | undefined;
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
