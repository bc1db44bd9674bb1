import type { RequestPriority } from '../../contract/options/choices.js';

/** A request that waits. */
export interface Waiter {
  readonly priority: Exclude<RequestPriority, 'critical'>;
  /** When the wait began, in monotonic ms. */
  readonly since: number;
}

/** Requests that wait, by priority and then in the order in which they came. */
export class WaitingLine<W extends Waiter> {
  readonly #normal: W[] = [];
  readonly #sheddable: W[] = [];

  get size(): number {
    return this.#normal.length + this.#sheddable.length;
  }

  /** The time at which the oldest wait began. */
  get oldest(): number | undefined {
    const [a = Infinity, b = Infinity] = [this.#normal[0]?.since, this.#sheddable[0]?.since];
    return this.size === 0 ? undefined : Math.min(a, b);
  }

  /**
   * Adds a request. If `most` already wait, a normal request takes the place of a sheddable one.
   *
   * @returns the request that has no place.
   */
  add(waiter: W, most: number): W | undefined {
    const isFull = this.size >= most;
    const isSheddable = waiter.priority === 'sheddable';
    if (isFull && (isSheddable || this.#sheddable.length === 0)) return waiter;
    (isSheddable ? this.#sheddable : this.#normal).push(waiter);
    return isFull ? this.#sheddable.pop() : undefined;
  }

  /** Removes and returns the next request. */
  take(): W | undefined {
    return this.#normal.shift() ?? this.#sheddable.shift();
  }

  /** Removes and returns the requests whose wait began before `since`. */
  takeBefore(since: number): W[] {
    return [this.#normal, this.#sheddable].flatMap((line) => {
      const kept = line.findIndex((waiter) => waiter.since >= since);
      return line.splice(0, kept === -1 ? line.length : kept);
    });
  }
}
