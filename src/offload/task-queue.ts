/** What can stand in a {@link TaskQueue}, in one at a time. */
export interface Queued {
  before: Queued | undefined;
  behind: Queued | undefined;
}

/** First in, first out; whoever leaves from the middle costs no more than the first. */
export class TaskQueue<T extends Queued> {
  #first: Queued | undefined;
  #last: Queued | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get first(): T | undefined {
    return this.#first as T | undefined;
  }

  push(item: T): void {
    item.before = this.#last;
    item.behind = undefined;
    if (this.#last === undefined) this.#first = item;
    else this.#last.behind = item;
    this.#last = item;
    this.#size += 1;
  }

  /** `item` must be in the queue. */
  remove(item: T): void {
    const { before, behind } = item;
    if (before === undefined) this.#first = behind;
    else before.behind = behind;
    if (behind === undefined) this.#last = before;
    else behind.before = before;
    item.before = item.behind = undefined;
    this.#size -= 1;
  }
}
