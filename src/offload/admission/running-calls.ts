import type { Call } from './call.js';
import type { Runner } from '../task/runner.interface.js';
import type { TaskObserver } from '../task/task.js';
import { aborted, type Failure, timedOut } from './failures.js';
import type { RetryAdvice } from './retry-advice.js';

/** How long an abandoned call may still run, in ms: a task that is nearly done costs less than a new thread. */
const GRACE_MS = 50;

/**
 * After an abandoned call is ended, no other is ended for this many times the time that a thread
 * takes to start. So disconnects cost at most a fifth of the threads' time.
 */
const STARTS_BETWEEN = 5;

/** The running calls. Each call may run for a limited time. */
export class RunningCalls {
  readonly #calls = new Set<Call>();
  /** The time for which ended calls have run, in ms. */
  #endedMs = 0;
  #measured = { at: performance.now(), busyMs: 0 };
  /** When a call was last ended because nobody waited for it, in monotonic ms. */
  #abandonedAt = -Infinity;

  constructor(
    private readonly runner: Pick<Runner, 'startMs'>,
    private readonly observer: TaskObserver,
    private readonly advice: RetryAdvice,
    /** Ends a running call together with its thread. */
    private readonly abort: (call: Call, failure: Failure) => void,
  ) {}

  get size(): number {
    return this.#calls.size;
  }

  /** The share of the time since the last call of this method in which `threads` threads were busy, 0..1. */
  utilization(threads: number): number {
    const at = performance.now();
    const running = [...this.#calls].reduce((sum, { startedAt }) => sum + at - startedAt, 0);
    const before = this.#measured;
    this.#measured = { at, busyMs: this.#endedMs + running };
    const share = (this.#measured.busyMs - before.busyMs) / ((at - before.at) * threads);
    // A thread may have got its next call already, so calls may overlap.
    return Math.min(1, share || 0);
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
    call.timer = setTimeout(() => {
      // If the event loop was blocked, the result may have arrived already, so it is read first.
      setImmediate(() => {
        if (call.state === 'running') this.abort(call, timedOut(task));
      });
    }, task.timeoutMs);
  }

  /** Does nothing for a call that never began. */
  end(call: Call): void {
    if (!this.#calls.delete(call)) return;
    const ms = performance.now() - call.startedAt;
    this.#endedMs += ms;
    this.advice.ran(ms);
    this.observer.ran(call.task, ms);
  }

  /** Ends a call for which nobody waits any more, after its grace time. */
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
