import type { Call } from './call.js';
import { Paced } from './paced.js';
import { QueueGauge } from './queue-gauge.js';
import type { Runner } from '../task/runner.interface.js';

/**
 * A call that was sent ahead may be overtaken in other threads for this long. To take it back costs
 * its thread a wait for the next call, which pays only if calls are longer than that.
 */
const OVERTAKEN_MS = 5;

/** Calls that wait for a thread, in the order in which they came, each for a bounded time. */
export class WaitingCalls {
  /** The call that has waited longest is first. */
  readonly #calls = new Set<Call>();
  readonly #gauge = new QueueGauge();
  readonly #overdue: Paced<Call>;

  /**
   * @param coming threads that are still to come: a call that waits for one takes no place.
   * @param expired is told of a call that has waited too long, and has left.
   */
  constructor(
    private readonly places: number,
    private readonly coming: () => number,
    expired: (call: Call) => void,
  ) {
    this.#overdue = new Paced((call) => {
      // It may have got its thread, or its client may have left.
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

  /** How long there has been no place, with no more than a second's relief, in ms. */
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

  /** The first leaves; not one that has begun, which its thread has yet to say. */
  next(): Call | undefined {
    for (const call of this.#calls) {
      if (!call.takeBack()) continue;
      this.leave(call);
      return call;
    }
    return undefined;
  }

  /**
   * Sends those that wait longest ahead to busy threads, as many as these take. A thread that gets
   * its next call only when it is idle stands still until then: without this there were 0.95 of the
   * calls of 50 µs, and as many of 6 ms (docs/cpu-bound-methods.md#threads).
   *
   * @param begun is told of a call that a thread has gone on to.
   */
  sendAhead(runner: Pick<Runner, 'offer'>, begun: (call: Call) => void): void {
    for (const call of this.#calls) {
      if (call.offer !== undefined) continue;
      // Nobody overtakes one that cannot be sent ahead.
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

  /** Older calls, which wait behind long ones in other threads, are the next to be sent ahead. */
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
