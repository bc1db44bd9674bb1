import type { OffloadMetrics } from '../offload.metrics.js';
import type { Task, TaskOutcome } from './runner.interface.js';

/** A task call, from its submission to its end. */
export class Call {
  /** When the call was made, in monotonic ms. */
  readonly calledAt = performance.now();
  /** When the call began to run, in monotonic ms. `undefined` while it waits. */
  startedAt: number | undefined;
  /** Set by {@link end}. `undefined` if the task itself returns or throws. */
  ended: { readonly outcome: TaskOutcome; readonly error: unknown } | undefined;
  /** The timeout of the wait, later of the run. */
  timer: NodeJS.Timeout | undefined;
  /** Ends the wait, or terminates the thread that runs the call. */
  stop: () => void = () => {};

  constructor(readonly task: Task) {}

  /** Ends the call. If it is running, its thread is terminated. */
  end(outcome: TaskOutcome, error: unknown): void {
    if (this.ended !== undefined) return;
    this.ended = { outcome, error };
    this.stop();
  }
}

/** The open calls of this process, and the utilization of its threads. */
export class Calls {
  readonly #calls = new Set<Call>();
  /** The total run time of ended calls, in ms. */
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

  /** Whether an open call was made before this time, in monotonic ms. */
  hasCallBefore(before: number): boolean {
    return [...this.#calls].some(({ calledAt }) => calledAt < before);
  }

  /** The fraction of time that the threads were busy since this method was last called, 0..1. */
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
