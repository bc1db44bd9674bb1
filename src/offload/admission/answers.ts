import type { Call } from './call.js';
import { Paced } from './paced.js';
import { restoreBuffers } from '../task/parcel.js';
import type { Completed } from '../task/runner.interface.js';
import type { TaskObserver } from '../task/task.js';

/** Gives the result of a call to everybody who waits for it. */
export class Answers {
  /** Answers to calls with several waiters. Their results may be large. */
  readonly #paced = new Paced<() => void>((answer) => answer());

  constructor(private readonly observer: Pick<TaskObserver, 'ended'>) {}

  give(call: Call, result: Completed): void {
    call.end((waiter, first) => {
      this.observer.ended(call.task, first ? 'completed' : 'coalesced');
      // As the thread gave it: it was copied on its way.
      if (call.key === undefined) waiter.resolve(restored(result));
      // Each has a copy, so that none sees the changes of another.
      else this.#paced.push(() => waiter.resolve(restored(structuredClone(result))));
    });
  }
}

function restored({ value, buffers }: Completed): unknown {
  return restoreBuffers([value], buffers)[0];
}
