import { AsyncLocalStorage } from 'node:async_hooks';
import { contentsOf, restoreBuffers } from '../task/parcel.js';
import { runBody } from '../task/run-body.js';
import type { Run, Runner, RunRequest, RunResult } from '../task/runner.interface.js';
import type { Task } from '../task/task.js';

/** Runs calls on the event loop. Copies arguments and results, as a thread would. */
export class InlineRunner implements Runner {
  readonly startMs = 0;
  readonly threads = 0;
  readonly spare = 0;
  #running = 0;
  readonly #inside = new AsyncLocalStorage<true>();

  constructor(
    readonly size: number,
    /** Calls the method of a task. */
    private readonly call: (task: number, args: unknown[]) => unknown,
    private readonly tasks: readonly Pick<Task, 'name'>[],
  ) {}

  /** Whether the current code runs in a task. Calls from within a task run directly, as in a thread. */
  get isInside(): boolean {
    return this.#inside.getStore() === true;
  }

  get idle(): number {
    return this.size - this.#running;
  }

  expect(): void {
    // It has no threads to start.
  }

  run(request: RunRequest): Run {
    // A call on the event loop cannot be aborted.
    return { result: this.#run(request), abort: () => {} };
  }

  async close(): Promise<void> {
    this.#inside.disable();
  }

  async #run({ task, args, contexts }: RunRequest): Promise<RunResult> {
    const given = copy(args);
    const carried = structuredClone(contexts);
    this.#running += 1;
    try {
      const body = () => this.call(task, given);
      const { name } = this.tasks[task]!;
      const result = await this.#inside.run(true, () => runBody(name, body, carried));
      return 'value' in result ? { ...result, value: copy([result.value])[0] } : result;
    } finally {
      this.#running -= 1;
    }
  }
}

function copy(values: readonly unknown[]): unknown[] {
  const { moved, buffers } = contentsOf(values);
  return restoreBuffers(structuredClone(values, { transfer: moved }) as unknown[], buffers);
}
