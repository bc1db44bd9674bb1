import type { Call } from './call.js';
import { Paced } from './paced.js';
import { QueueGauge } from './queue-gauge.js';

/** Calls that wait for a thread, in the order in which they were made, each for a limited time. */
export class WaitingCalls {
  /** The call that has waited longest is first. */
  readonly #calls = new Set<Call>();
  readonly #gauge = new QueueGauge();
  readonly #overdue: Paced<Call>;

  /**
   * @param coming returns the number of threads that can still start. The same number of calls may
   * wait in addition to `places`.
   * @param expired is called with each call that has waited too long and was removed.
   */
  constructor(
    private readonly places: number,
    private readonly coming: () => number,
    expired: (call: Call) => void,
  ) {
    this.#overdue = new Paced((call) => {
      // The call may have begun, or its client may have disconnected.
      if (call.state !== 'waiting') return;
      this.leave(call);
      expired(call);
    });
  }

  get size(): number {
    return this.#calls.size;
  }

  /** The call that has waited longest. */
  get first(): Call | undefined {
    return this.#calls.values().next().value;
  }

  get hasPlace(): boolean {
    return this.size < this.places + this.coming();
  }

  /** How long the queue has been full, in ms. See {@link QueueGauge}. */
  get fullForMs(): number {
    return this.#gauge.fullForMs(this.#isFull, performance.now());
  }

  enter(call: Call): void {
    this.#calls.add(call);
    call.timer = setTimeout(() => this.#overdue.push(call), call.task.queueTimeoutMs);
    this.#note();
  }

  leave(call: Call): void {
    this.#calls.delete(call);
    clearTimeout(call.timer);
    this.#note();
  }

  /** Removes and returns the oldest call. */
  next(): Call | undefined {
    const call = this.first;
    if (call !== undefined) this.leave(call);
    return call;
  }

  /** A queue of length 0 is never full. */
  get #isFull(): boolean {
    return this.places > 0 && !this.hasPlace;
  }

  #note(): void {
    this.#gauge.note(this.#isFull, performance.now());
  }
}
