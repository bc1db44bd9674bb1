import { buffersIn, restoreBuffers } from '../task/buffers.js';
import type { CarriedContexts } from '../task/carry-context.js';
import { cloneOf, resultOf, runBody } from '../task/run-body.js';
import type { Task, TaskObserver } from '../task/task.js';
import { Calls } from './calls.js';
import type { OffloadSnapshot, Runner } from './runner.interface.js';

/** Runs calls on the event loop. Copies arguments and results, as a thread would. */
export class InlineRunner implements Runner {
  readonly #calls: Calls;

  constructor(
    readonly size: number,
    /** Calls the method of a task. */
    private readonly call: (task: number, args: unknown[]) => unknown,
    observer: TaskObserver,
  ) {
    this.#calls = new Calls(observer);
  }

  async submit(
    task: Task,
    args: readonly unknown[],
    contexts: CarriedContexts | undefined,
  ): Promise<unknown> {
    const call = this.#calls.add(task);
    this.#calls.begin(call);
    try {
      const [given, carried] = [copy(task.name, args), cloneOf(task.name, contexts)];
      const result = await runBody(task.name, () => this.call(task.index, given), carried);
      const value = resultOf(
        result.ok ? { ...result, value: copy(task.name, [result.value])[0] } : result,
      );
      this.#calls.remove(call, 'completed');
      return value;
    } catch (error) {
      this.#calls.remove(call, 'failed');
      throw error;
    }
  }

  snapshot(): OffloadSnapshot {
    return { threads: 0, running: this.#calls.size, queueSize: 0 };
  }

  hasCallFrom(before: number): boolean {
    return this.#calls.hasCallFrom(before);
  }

  async close(): Promise<void> {
    // A call on the event loop cannot be ended.
  }
}

function copy(name: string, values: readonly unknown[]): unknown[] {
  return restoreBuffers(cloneOf(name, [...values]), buffersIn(values));
}
