import { buffersIn, cloneOf, restoreBuffers, resultOf, runBody } from '../task/run-body.js';
import type { TraceHeaders } from '../task/trace-context.js';
import { Calls } from './calls.js';
import type { OffloadSnapshot, Runner, Task, TaskObserver } from './runner.interface.js';

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
    trace: TraceHeaders | undefined,
  ): Promise<unknown> {
    const call = this.#calls.add(task);
    this.#calls.begin(call);
    try {
      const given = copy(task.name, args);
      const result = await runBody(task.name, () => this.call(task.index, given), trace);
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
