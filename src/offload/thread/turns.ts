import { setImmediate as turn } from 'node:timers/promises';

/** Runs calls one at a time, in the order in which they arrive. */
export class Turns {
  #last: Promise<void> | undefined;

  /** Begins at once if no other call is before this one. `begin` must not throw. */
  take<R>(begin: () => Promise<R>): Promise<R> {
    const run = this.#last === undefined ? begin() : this.#last.then(begin);
    // Wait one turn, so that the result is posted before the next call begins and blocks the
    // thread. A call that arrives in this turn must queue behind the waiting calls, because the
    // event loop counts the waiting calls as begun.
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
