import type { Run, RunRequest } from '../task/runner.interface.js';
import type { Task } from '../task/task.js';

/** Watches for the disconnect of a waiting client. @returns a function that ends the watch. */
export type Watch = (gone: () => void) => () => void;

/** The watch for a caller that cannot disconnect. */
export const NOBODY: Watch = () => () => {};

/** The caller that waits for a call. */
export interface Caller {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** `waiting → running → over`, or from `waiting` to `over`. */
type CallState = 'waiting' | 'running' | 'over';

/** One call of a task. */
export class Call {
  state: CallState = 'waiting';
  /** When the call was made, in monotonic ms. */
  readonly calledAt = performance.now();
  startedAt = 0;
  run: Run | undefined;
  /** The timer that limits the wait, and later the timer that limits the run. */
  timer: NodeJS.Timeout | undefined;
  /** Ends the watch on the caller's client. */
  unwatch: () => void = () => {};
  #caller: Caller | undefined;

  constructor(
    readonly task: Task,
    public request: RunRequest,
    caller: Caller,
  ) {
    this.#caller = caller;
  }

  /** Returns the caller once, for its answer; `undefined` if it has its answer. */
  release(): Caller | undefined {
    const caller = this.#caller;
    if (caller === undefined) return undefined;
    this.#caller = undefined;
    this.unwatch();
    return caller;
  }

  /** Nothing happens to the call afterwards. */
  end(): void {
    this.state = 'over';
    clearTimeout(this.timer);
  }
}
