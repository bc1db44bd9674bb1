import type { Call } from './call.js';
import type { RetryAdvice } from './retry-advice.js';
import type { TaskObserver } from '../task/task.js';

/** Calls that threads are at, each for a bounded time. */
export class RunningCalls {
  readonly #calls = new Set<Call>();

  constructor(
    private readonly observer: TaskObserver,
    private readonly advice: RetryAdvice,
    /** Told of a call that takes too long. */
    private readonly overdue: (call: Call) => void,
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
        if (call.state === 'running') this.overdue(call);
      });
    }, task.timeoutMs);
  }

  /** Does nothing where it never began. */
  end(call: Call): void {
    if (!this.#calls.delete(call)) return;
    const ms = performance.now() - call.startedAt;
    this.advice.ran(ms);
    this.observer.ran(call.task, ms);
  }
}
