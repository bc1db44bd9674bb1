import { contentsOf } from '../task/parcel.js';
import type { Offer, Run, RunRequest } from '../task/runner.interface.js';
import type { Task } from '../task/task.js';
import type { CallTrace } from '../task/trace-context.js';

/** Watches for the disconnect of a waiting client. @returns a function that ends the watch. */
export type Watch = (gone: () => void) => () => void;

/** The watch for a caller that cannot disconnect. */
export const NOBODY: Watch = () => () => {};

/** A caller that waits for a call. */
export interface Waiter {
  /** The admitted call for which it waits. */
  call: Call | undefined;
  readonly trace: CallTrace | undefined;
  resolve(value: unknown): void;
  reject(error: unknown): void;
  /** Ends the watch on the waiter's client. */
  unwatch: () => void;
}

/** Calls `leave` once the client has disconnected. @returns whether it already had. */
export function watchClient(waiter: Waiter, watch: Watch, leave: () => void): boolean {
  let isGone = false;
  waiter.unwatch = watch(() => {
    isGone = true;
    leave();
  });
  return isGone;
}

/** `waiting → running → over`, or from `waiting` to `over`. */
type CallState = 'waiting' | 'running' | 'over';

/** One call of a task: more than one caller may wait for it. */
export class Call {
  state: CallState = 'waiting';
  /** When the call was made, in monotonic ms. */
  readonly calledAt = performance.now();
  startedAt = 0;
  run: Run | undefined;
  /** Set while the call waits in the thread that is to run it. */
  offer: Offer | undefined;
  offeredAt = 0;
  /** The timer that limits the wait, and later the timer that limits the run. */
  timer: NodeJS.Timeout | undefined;
  readonly waiters = new Set<Waiter>();
  #moves: boolean | undefined;

  constructor(
    readonly task: Task,
    readonly request: RunRequest,
    /** Calls with the same key are coalesced. */
    readonly key: string | undefined,
    /** The trace of the caller that made the call. */
    readonly trace: CallTrace | undefined,
  ) {}

  /** Whether an argument is moved to the thread. A call with such an argument can be sent only once. */
  get moves(): boolean {
    return (this.#moves ??= contentsOf(this.request.args).moved.length > 0);
  }

  /** Puts the call back into the queue. @returns false if its thread has already begun the call. */
  takeBack(): boolean {
    if (this.offer?.takeBack() === false) return false;
    this.offer = undefined;
    return true;
  }

  addWaiter(waiter: Waiter): void {
    waiter.call = this;
    if (waiter.trace !== this.trace) waiter.trace?.joined();
    this.waiters.add(waiter);
  }

  /** Ends the call, and calls `tell` for each waiter. Nothing happens to the call afterwards. */
  end(tell: (waiter: Waiter, first: boolean) => void): void {
    this.state = 'over';
    clearTimeout(this.timer);
    let first = true;
    for (const waiter of this.waiters) {
      waiter.unwatch();
      tell(waiter, first);
      first = false;
    }
    this.waiters.clear();
  }
}
