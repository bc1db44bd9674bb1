import { contentsOf } from '../task/parcel.js';
import type { Offer, Run, RunRequest } from '../task/runner.interface.js';
import type { Task } from '../task/task.js';
import type { CallTrace } from '../task/trace-context.js';

/** Watches whether the one who waits is still there. @returns what ends the watch. */
export type Watch = (gone: () => void) => () => void;

/** The watch on a caller who cannot leave. */
export const NOBODY: Watch = () => () => {};

/** Somebody who waits for a call. */
export interface Waiter {
  /** The admitted call that it waits for. */
  call: Call | undefined;
  readonly trace: CallTrace | undefined;
  resolve(value: unknown): void;
  reject(error: unknown): void;
  /** Ends the watch on its client. */
  unwatch: () => void;
}

/** Calls `leave` once the client is gone. @returns whether it is gone already. */
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
  /** Monotonic ms. */
  readonly calledAt = performance.now();
  startedAt = 0;
  run: Run | undefined;
  /** While it waits in the thread that is to run it. */
  offer: Offer | undefined;
  offeredAt = 0;
  /** The timer of the wait, then of the run. */
  timer: NodeJS.Timeout | undefined;
  readonly waiters = new Set<Waiter>();
  #moves: boolean | undefined;

  constructor(
    readonly task: Task,
    readonly request: RunRequest,
    /** Equal for calls that are coalesced. */
    readonly key: string | undefined,
    /** The trace of the caller who made it. */
    readonly trace: CallTrace | undefined,
  ) {}

  /** Something of its arguments is moved to its thread: it can be sent once. */
  get moves(): boolean {
    return (this.#moves ??= contentsOf(this.request.args).moved.length > 0);
  }

  /** It is to wait with the others. @returns false if it has begun, and its thread has not said so yet. */
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

  /** Tells everybody; the last thing that happens to a call. */
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
