import { contentsOf, restoreBuffers } from './parcel.js';
import { runBody } from './run-body.js';
import type { Run, Runner, RunRequest, RunResult } from './runner.interface.js';

/** Runs calls on the event loop, and copies what a thread would be given and give. */
export class InlineRunner implements Runner {
  #running = 0;

  constructor(
    readonly size: number,
    /** Calls the method of a task. */
    private readonly call: (task: number, args: unknown[]) => unknown,
  ) {}

  get idle(): number {
    return this.size - this.#running;
  }

  run(request: RunRequest): Run {
    // What runs on the event loop cannot be ended.
    return { result: this.#run(request), abort: () => {} };
  }

  async close(): Promise<void> {
    // There is nothing to let go of.
  }

  async #run({ task, args }: RunRequest): Promise<RunResult> {
    const given = copy(args);
    this.#running += 1;
    try {
      const result = await runBody(() => this.call(task, given), undefined);
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
