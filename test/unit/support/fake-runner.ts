import type { Watch } from '../../../src/offload/admission/call.js';
import type {
  Offer,
  OfferEvents,
  Run,
  Runner,
  RunRequest,
  RunResult,
} from '../../../src/offload/task/runner.interface.js';
import type { Task, TaskObserver, TaskOutcome } from '../../../src/offload/task/task.js';
import { describeError } from '../../../src/offload/task/task-error.js';

export const TASK: Task = {
  name: 'Cats.count',
  functionName: 'Cats.countAll',
  index: 0,
  timeoutMs: 30_000,
  queueTimeoutMs: 5_000,
  coalesce: false,
  abortOnDisconnect: true,
  mode: 'thread',
  queue: undefined,
  parameters: ['first', 'second'],
};

/** A call of a {@link FakeRunner}. It ends when the test ends it. */
export class FakeRun implements Run {
  readonly result: Promise<RunResult>;
  aborted = false;
  over = false;
  /** The call that the thread is to run next. */
  next: FakeOffer | undefined;
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
    // The next one runs: this one has ended, and is about to say so.
    if (this.next?.state === 'begun') return;
    this.next?.return();
    if (this.runner.endsAtOnce) this.lose(new DOMException('aborted', 'AbortError'));
  };

  #end(settle: () => void): void {
    if (this.over) return;
    this.over = true;
    // As a thread does it: first it goes on, then it tells what became of the last call.
    this.goOn();
    const { next } = this;
    this.next = undefined;
    if (next?.state === 'begun') next.run();
    else next?.return();
    settle();
  }

  /** It has ended in its thread; who waits for it has not heard of it. */
  goOn(): void {
    const { next, runner } = this;
    if (next?.state !== 'offered' || this.aborted) return;
    next.state = 'begun';
    runner.onRun(next);
  }
}

/** A call that waits in a thread. */
export class FakeOffer {
  state: 'offered' | 'begun' | 'withdrawn' = 'offered';
  readonly result: Promise<RunResult>;
  made: FakeRun | undefined;
  #follow!: (result: Promise<RunResult>) => void;

  constructor(
    private readonly runner: FakeRunner,
    readonly request: RunRequest,
    private readonly events: OfferEvents,
  ) {
    this.result = new Promise((resolve) => (this.#follow = resolve));
  }

  run(): void {
    this.made = new FakeRun(this.runner, this.request);
    this.runner.runs.push(this.made);
    this.#follow(this.made.result);
    this.events.begun();
  }

  return(): void {
    if (this.state !== 'offered') return;
    this.state = 'withdrawn';
    this.events.returned();
  }

  takeBack(): boolean {
    if (this.state === 'offered') this.state = 'withdrawn';
    return this.state === 'withdrawn';
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
  /** Whether threads take the next call while they run one. */
  takesOffers = false;
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

  offer(request: RunRequest, events: OfferEvents): Offer | undefined {
    const ahead = this.active.find(({ next, aborted }) => next === undefined && !aborted);
    if (!this.takesOffers || ahead === undefined) return undefined;
    const offer = new FakeOffer(this, request, events);
    ahead.next = offer;
    return {
      result: offer.result,
      takeBack: () => offer.takeBack(),
      abort: () => offer.made?.abort(),
    };
  }

  async close(): Promise<void> {
    this.closed = true;
  }
}

/** Keeps what it is told. */
export class FakeObserver implements TaskObserver {
  readonly waited: number[] = [];
  readonly runMs: number[] = [];
  readonly cpuMs: number[] = [];
  readonly outcomes: TaskOutcome[] = [];

  began(_task: Task, waitedMs: number): void {
    this.waited.push(waitedMs);
  }

  ran(_task: Task, ms: number): void {
    this.runMs.push(ms);
  }

  computed(_task: Task, cpuMs: number): void {
    this.cpuMs.push(cpuMs);
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
