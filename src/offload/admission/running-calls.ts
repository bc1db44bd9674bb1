import type { Call } from './call.js';
import type { Runner } from '../task/runner.interface.js';
import type { TaskObserver } from '../task/task.js';
import { aborted, type Failure, timedOut } from './failures.js';
import type { RetryAdvice } from './retry-advice.js';

/** A thread that is nearly done is cheaper left alone than replaced: its task may end within this. */
const GRACE_MS = 50;

/** Clients that go away cost no more than a fifth of the time that threads have. */
const STARTS_BETWEEN = 5;

/** Calls that threads are at, each for a bounded time. */
export class RunningCalls {
  readonly #calls = new Set<Call>();
  /** When a call was last ended because nobody waited for it; monotonic ms. */
  #abandonedAt = -Infinity;

  constructor(
    private readonly runner: Pick<Runner, 'startMs'>,
    private readonly observer: TaskObserver,
    private readonly advice: RetryAdvice,
    /** Ends a call that runs, at the price of its thread. */
    private readonly abort: (call: Call, failure: Failure) => void,
  ) {}

  get size(): number {
    return this.#calls.size;
  }

  [Symbol.iterator](): Iterator<Call> {
    return this.#calls.values();
  }

  begin(call: Call): void {
    const { task } = call;
    call.state = 'running';
    call.startedAt = performance.now();
    this.#calls.add(call);
    this.observer.began(task, call.startedAt - call.calledAt);
    call.trace?.began();
    call.timer = setTimeout(() => {
      // After a late event loop the result may be there already, so it is read first.
      setImmediate(() => {
        if (call.state === 'running') this.abort(call, timedOut(task));
      });
    }, task.timeoutMs);
  }

  /** Does nothing for a call that never began. */
  end(call: Call): void {
    if (!this.#calls.delete(call)) return;
    const ms = performance.now() - call.startedAt;
    this.advice.ran(ms);
    this.observer.ran(call.task, ms);
  }

  /** Nobody waits for the call any more: it is ended after its grace. */
  abandon(call: Call): void {
    clearTimeout(call.timer);
    call.timer = setTimeout(() => this.#endAbandoned(call), GRACE_MS);
  }

  #endAbandoned(call: Call): void {
    const now = performance.now();
    const notBefore = this.#abandonedAt + this.runner.startMs * STARTS_BETWEEN;
    const overdueAt = call.startedAt + call.task.timeoutMs;
    const waitMs = Math.min(notBefore, overdueAt) - now;
    if (waitMs > 0) {
      call.timer = setTimeout(() => this.#endAbandoned(call), waitMs);
      return;
    }
    this.#abandonedAt = now;
    this.abort(call, aborted(call.task));
  }
}
