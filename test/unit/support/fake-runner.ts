import type { Watch } from '../../../src/offload/admission/call.js';
import type {
  Run,
  Runner,
  RunRequest,
  RunResult,
} from '../../../src/offload/task/runner.interface.js';
import type { Task, TaskObserver, TaskOutcome } from '../../../src/offload/task/task.js';
import { describeError } from '../../../src/offload/task/task-error.js';

export const TASK: Task = {
  name: 'Cats.count',
  index: 0,
  timeoutMs: 30_000,
  queueTimeoutMs: 5_000,
  abortOnDisconnect: true,
  queue: undefined,
  parameters: ['first', 'second'],
};

/** A call of a {@link FakeRunner}. It ends when the test ends it. */
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
    this.#end(() => this.#resolve({ ok: true, value, buffers: [], ...about }));
  }

  /** The body has thrown. */
  fail(thrown: unknown): void {
    this.#end(() => this.#resolve({ ok: false, error: describeError(thrown) }));
  }

  /** The thread died, or nothing got there. */
  lose(error: unknown): void {
    this.#end(() => this.#reject(error));
  }

  readonly abort = (): void => {
    this.aborted = true;
    if (this.runner.endsAtOnce) this.lose(new DOMException('aborted', 'AbortError'));
  };

  #end(settle: () => void): void {
    if (this.over) return;
    this.over = true;
    settle();
  }
}

/** Has as many threads as it is told. */
export class FakeRunner implements Runner {
  readonly runs: FakeRun[] = [];
  /** Whether an aborted call ends at once, as in a thread. On the event loop it goes on. */
  endsAtOnce = true;
  startMs = 0;
  closed = false;
  /** A call begins, in its thread. */
  onRun: (run: Pick<FakeRun, 'request'>) => void = () => {};
  readonly threads = 0;
  /** Threads that have yet to come: no call of theirs is idle. */
  spare = 0;
  expected = 0;

  constructor(public size: number) {}

  get active(): readonly FakeRun[] {
    return this.runs.filter(({ over }) => !over);
  }

  get idle(): number {
    return Math.max(0, this.size - this.spare - this.active.length);
  }

  run(request: RunRequest): FakeRun {
    if (this.idle === 0) throw new Error('a call was begun without a thread for it');
    const run = new FakeRun(this, request);
    this.runs.push(run);
    this.onRun(run);
    return run;
  }

  expect(waiting: number): void {
    this.expected = waiting;
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

/** A client that waits for an answer until it disconnects. */
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
