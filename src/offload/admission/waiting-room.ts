import type { Call } from './call.js';
import { Paced } from './paced.js';
import { QueueGauge } from './queue-gauge.js';
import type { Runner } from '../task/runner.interface.js';

/** Calls that wait for a thread, in the order in which they came, each for a bounded time. */
export class WaitingRoom {
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
      // It got its thread, or its client left.
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
   * Has those that wait longest wait in threads, as many as these take.
   *
   * @param begun is told of a call that a thread has gone on to.
   */
  offerTo(runner: Pick<Runner, 'offer'>, begun: (call: Call) => void): void {
    for (const call of this.#calls) {
      if (call.offer !== undefined) continue;
      // Nobody overtakes one that cannot be offered.
      if (call.moves) return;
      call.offer = runner.offer(call.request, call.order, {
        begun: () => {
          this.leave(call);
          begun(call);
        },
        returned: () => (call.offer = undefined),
      });
      if (call.offer === undefined) return;
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
