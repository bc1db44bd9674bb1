import type { Watch } from '../../src/offload/call.js';
import type { Run, Runner, RunRequest, RunResult } from '../../src/offload/runner.interface.js';
import type { Task, TaskObserver, TaskOutcome } from '../../src/offload/task.js';
import { describeError } from '../../src/offload/task-error.js';

export const TASK: Task = {
  name: 'Cats.count',
  index: 0,
  timeoutMs: 30_000,
  queueTimeoutMs: 5_000,
  coalesce: false,
  abortOnDisconnect: true,
  parameters: ['first', 'second'],
};

/** A call as a {@link FakeRunner} has it: it ends when it is told to. */
export class FakeRun implements Run {
  readonly result: Promise<RunResult>;
  aborted = false;
  over = false;
  #resolve!: (result: RunResult) => void;
  #reject!: (error: unknown) => void;

  constructor(
    private readonly runner: FakeRunner,
    readonly request: RunRequest,
  ) {
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  complete(value?: unknown, about: Partial<Extract<RunResult, { ok: true }>> = {}): void {
    this.#end(() => this.#resolve({ ok: true, value, buffers: [], contexts: undefined, ...about }));
  }

  /** The body has thrown. */
  fail(thrown: unknown): void {
    this.#end(() => this.#resolve({ ok: false, error: describeError(thrown) }));
  }

  /** The thread died, or nothing got there. */
  lose(error: unknown): void {
    this.#end(() => this.#reject(error));
  }

  abort(): void {
    this.aborted = true;
    if (this.runner.endsAtOnce) this.lose(new DOMException('aborted', 'AbortError'));
  }

  #end(settle: () => void): void {
    if (this.over) return;
    this.over = true;
    settle();
  }
}

/** Has as many threads as it is told. */
export class FakeRunner implements Runner {
  readonly runs: FakeRun[] = [];
  /** Whether a call that is aborted is gone at once, as in a thread; on the event loop it goes on. */
  endsAtOnce = true;
  startMs = 0;
  closed = false;
  onRun: (run: FakeRun) => void = () => {};

  constructor(public size: number) {}

  get active(): readonly FakeRun[] {
    return this.runs.filter(({ over }) => !over);
  }

  get idle(): number {
    return Math.max(0, this.size - this.active.length);
  }

  run(request: RunRequest): FakeRun {
    if (this.idle === 0) throw new Error('a call was begun without a thread for it');
    const run = new FakeRun(this, request);
    this.runs.push(run);
    this.onRun(run);
    return run;
  }

  async close(): Promise<void> {
    this.closed = true;
  }
}

/** Keeps what it is told. */
export class FakeObserver implements TaskObserver {
  readonly waited: number[] = [];
  readonly runMs: number[] = [];
  readonly outcomes: TaskOutcome[] = [];

  began(_task: Task, waitedMs: number): void {
    this.waited.push(waitedMs);
  }

  ran(_task: Task, ms: number): void {
    this.runMs.push(ms);
  }

  ended(_task: Task, outcome: TaskOutcome): void {
    this.outcomes.push(outcome);
  }
}

/** Whoever waits for an answer, until it goes away. */
export class FakeWaitingClient {
  gone = false;
  readonly #watchers = new Set<() => void>();

  get watches(): number {
    return this.#watchers.size;
  }

  readonly watch: Watch = (gone) => {
    if (this.gone) {
      gone();
      return () => {};
    }
    this.#watchers.add(gone);
    return () => this.#watchers.delete(gone);
  };

  leave(): void {
    this.gone = true;
    for (const gone of this.#watchers) gone();
  }
}
