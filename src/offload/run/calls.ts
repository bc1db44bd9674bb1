import type { OffloadMetrics } from '../offload.metrics.js';
import type { Task, TaskOutcome } from './runner.interface.js';

/** One call of a task, from its submission to its end. */
export class Call {
  /** When the call was made, in monotonic ms. */
  readonly calledAt = performance.now();
  /** When the call began to run; `undefined` while it waits. */
  startedAt: number | undefined;
  /** The reason why the call was ended from here; `undefined` if it ends by itself. */
  ended: { readonly outcome: TaskOutcome; readonly error: unknown } | undefined;
  /** The timer that limits the wait, and later the timer that limits the run. */
  timer: NodeJS.Timeout | undefined;
  /** Ends the wait of the call, or the thread that runs it. */
  stop: () => void = () => {};

  constructor(readonly task: Task) {}

  /** Ends the call, a running one together with its thread. */
  end(outcome: TaskOutcome, error: unknown): void {
    if (this.ended !== undefined) return;
    this.ended = { outcome, error };
    this.stop();
  }
}

/** The calls of this process that have not ended, and how long they ran. */
export class Calls {
  readonly #calls = new Set<Call>();
  /** The time for which ended calls have run, in ms. */
  #endedMs = 0;
  #measured = { at: performance.now(), busyMs: 0 };

  constructor(private readonly metrics?: Pick<OffloadMetrics, 'began' | 'ran' | 'ended'>) {}

  get size(): number {
    return this.#calls.size;
  }

  get running(): number {
    return [...this.#calls].filter(({ startedAt }) => startedAt !== undefined).length;
  }

  [Symbol.iterator](): Iterator<Call> {
    return this.#calls.values();
  }

  /** Whether a call was made before this time (monotonic ms). */
  hasCallFrom(before: number): boolean {
    return [...this.#calls].some(({ calledAt }) => calledAt < before);
  }

  /** The share of the time since the last call of this method in which `threads` threads were busy, 0..1. */
  utilization(threads: number): number {
    const at = performance.now();
    let busyMs = this.#endedMs;
    for (const { startedAt } of this.#calls) busyMs += at - (startedAt ?? at);
    const before = this.#measured;
    this.#measured = { at, busyMs };
    const share = (busyMs - before.busyMs) / ((at - before.at) * threads);
    return Math.min(1, share || 0);
  }

  add(task: Task): Call {
    const call = new Call(task);
    this.#calls.add(call);
    return call;
  }

  begin(call: Call): void {
    call.startedAt = performance.now();
    this.metrics?.began(call.task, call.startedAt - call.calledAt);
  }

  remove(call: Call, outcome: TaskOutcome): void {
    this.#calls.delete(call);
    clearTimeout(call.timer);
    if (call.startedAt !== undefined) {
      const ms = performance.now() - call.startedAt;
      this.#endedMs += ms;
      this.metrics?.ran(call.task, ms);
    }
    this.metrics?.ended(call.task, outcome);
  }
}
