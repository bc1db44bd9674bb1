import { setImmediate as turn } from 'node:timers/promises';

/** Runs one call at a time, in the order in which they came. */
export class Turns {
  #last: Promise<void> | undefined;

  /** Begins at once where nothing came before it. `begin` must not throw. */
  take<R>(begin: () => Promise<R>): Promise<R> {
    const run = this.#last === undefined ? begin() : this.#last.then(begin);
    // Its result is posted before the next one begins, which may hold the thread. A call that comes
    // in between is behind those that wait: the event loop has been told that they have begun.
    const over: Promise<void> = run.then(
      () => turn(),
      () => turn(),
    );
    this.#last = over;
    void over.then(() => {
      if (this.#last === over) this.#last = undefined;
    });
    return run;
  }
}
