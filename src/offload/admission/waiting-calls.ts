import type { Call } from './call.js';
import { Paced } from './paced.js';
import { QueueGauge } from './queue-gauge.js';
import type { Runner } from '../task/runner.interface.js';

/**
 * How long later calls may overtake a call that was sent ahead, in ms. After that the call is taken
 * back. Its thread has to wait for another call, so this pays only if calls take longer than this.
 */
const OVERTAKEN_MS = 5;

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
      if (call.state !== 'waiting' || !call.takeBack()) return;
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

  /** Removes and returns the oldest call that no thread has begun. */
  next(): Call | undefined {
    for (const call of this.#calls) {
      if (!call.takeBack()) continue;
      this.leave(call);
      return call;
    }
    return undefined;
  }

  /**
   * Sends the calls that have waited longest ahead to busy threads, one for each thread. Otherwise
   * a thread would be idle between two calls: without this, throughput was 0.95 times as high for
   * calls of 50 µs, and equal for calls of 6 ms (docs/cpu-bound-methods.md#threads).
   *
   * @param begun is called when a thread begins one of these calls, with that call.
   */
  sendAhead(runner: Pick<Runner, 'offer'>, begun: (call: Call) => void): void {
    for (const call of this.#calls) {
      if (call.offer !== undefined) continue;
      // A call that cannot be sent ahead must not be overtaken.
      if (call.moves) return;
      call.offer = runner.offer(call.request, {
        begun: () => {
          this.#freeOvertakenBy(call);
          this.leave(call);
          begun(call);
        },
        returned: () => (call.offer = undefined),
      });
      if (call.offer === undefined) return;
      call.offeredAt = performance.now();
    }
  }

  /** Takes back older calls that wait behind long calls in other threads. These older calls are sent ahead next. */
  #freeOvertakenBy(call: Call): void {
    const before = performance.now() - OVERTAKEN_MS;
    for (const older of this.#calls) {
      if (older === call) return;
      if (older.offeredAt < before) older.takeBack();
    }
  }

  /** A queue of length 0 is never full. */
  get #isFull(): boolean {
    return this.places > 0 && !this.hasPlace;
  }

  #note(): void {
    this.#gauge.note(this.#isFull, performance.now());
  }
}
