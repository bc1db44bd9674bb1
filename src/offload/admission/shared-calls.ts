import { keyOf } from '../task/arguments.js';
import type { Call } from './call.js';
import type { Task } from '../task/task.js';

/** Calls that others may join, by what makes them the same: `coalesce`. */
export class SharedCalls {
  readonly #calls = new Map<string, Call>();

  /**
   * The common key of equal calls; `undefined` if no call equals it.
   *
   * @throws the error of structured clone for arguments that it refuses.
   */
  keyOf(task: Task, args: readonly unknown[]): string | undefined {
    return task.coalesce ? keyOf(task, args) : undefined;
  }

  get(key: string | undefined): Call | undefined {
    return key === undefined ? undefined : this.#calls.get(key);
  }

  add(call: Call): void {
    if (call.key !== undefined) this.#calls.set(call.key, call);
  }

  /** Another one may have taken its place. */
  remove(call: Call): void {
    if (this.get(call.key) === call) this.#calls.delete(call.key!);
  }
}
