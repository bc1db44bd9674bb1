import type { Call } from './call.js';
import { Paced } from './paced.js';
import { QueueGauge } from './queue-gauge.js';
import { TaskQueue } from './task-queue.js';

/** Calls that wait for a thread, in the order in which they came, each for a bounded time. */
export class WaitingRoom {
  readonly #queue = new TaskQueue<Call>();
  readonly #gauge = new QueueGauge();
  readonly #overdue: Paced<Call>;

  /** @param expired is told of a call that has waited too long, and has left. */
  constructor(
    private readonly places: number,
    expired: (call: Call) => void,
  ) {
    this.#overdue = new Paced((call) => {
      if (call.state !== 'waiting') return; // it got its thread, or its client left
      this.leave(call);
      expired(call);
    });
  }

  get size(): number {
    return this.#queue.size;
  }

  /** Who has waited longest. */
  get first(): Call | undefined {
    return this.#queue.first;
  }

  get hasPlace(): boolean {
    return this.size < this.places;
  }

  /** How long there has been no place, with no more than a second's relief, in ms. */
  get fullForMs(): number {
    return this.#gauge.fullForMs(this.#isFull, performance.now());
  }

  enter(call: Call): void {
    this.#queue.push(call);
    call.timer = setTimeout(() => this.#overdue.push(call), call.task.queueTimeoutMs);
    this.#note();
  }

  leave(call: Call): void {
    this.#queue.remove(call);
    clearTimeout(call.timer);
    this.#note();
  }

  /** The first leaves. */
  next(): Call | undefined {
    const call = this.first;
    if (call !== undefined) this.leave(call);
    return call;
  }

  /** Where nobody may wait, nothing is ever full. */
  get #isFull(): boolean {
    return this.places > 0 && !this.hasPlace;
  }

  #note(): void {
    this.#gauge.note(this.#isFull, performance.now());
  }
}
