import type { Call } from './call.js';
import type { Runner } from '../task/runner.interface.js';

/** A thread that is nearly done is cheaper left alone than replaced: its task may end within this. */
const GRACE_MS = 50;

/** Clients that go away cost no more than a fifth of the time that threads have. */
const STARTS_BETWEEN = 5;

/** Ends calls that run and that nobody waits for any more, at the price of their threads. */
export class Abandonment {
  /** When that was done last; monotonic ms. */
  #lastAt = -Infinity;

  constructor(
    private readonly runner: Pick<Runner, 'startMs'>,
    private readonly end: (call: Call) => void,
  ) {}

  begin(call: Call): void {
    clearTimeout(call.timer);
    call.timer = setTimeout(() => this.#judge(call), GRACE_MS);
  }

  #judge(call: Call): void {
    const now = performance.now();
    const notBefore = this.#lastAt + this.runner.startMs * STARTS_BETWEEN;
    const overdueAt = call.startedAt + call.task.timeoutMs;
    const waitMs = Math.min(notBefore, overdueAt) - now;
    if (waitMs > 0) {
      call.timer = setTimeout(() => this.#judge(call), waitMs);
      return;
    }
    this.#lastAt = now;
    this.end(call);
  }
}
