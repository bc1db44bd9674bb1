import type { PooledThread, ThreadPoolEvents } from './thread-pool.interface.js';

/** A thread in JavaScript ends at once when it is told to; one in native code only when that returns. */
const END_MS = 5_000;

/** Threads whose calls were to be ended, and have not. */
export class HeldThreads {
  #size = 0;

  constructor(private readonly events: Pick<ThreadPoolEvents, 'changed' | 'unfit'>) {}

  get size(): number {
    return this.#size;
  }

  /** Until it exits. */
  add(thread: Pick<PooledThread, 'exited'>): void {
    const overdue = setTimeout(() => {
      this.events.unfit('a thread that was to be ended is held by native code');
    }, END_MS).unref();
    this.#size += 1;
    void thread.exited.then(() => {
      clearTimeout(overdue);
      this.#size -= 1;
      this.events.changed();
    });
  }
}
