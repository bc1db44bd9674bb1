import type { TaskRejection } from '../offload.exceptions.js';
import { copyRequest, uncloneableArguments } from '../task/arguments.js';
import { findUncloneable } from '../task/cloneable.js';
import { restoreResult } from '../task/parcel.js';
import type { Completed, Runner, RunRequest, RunResult } from '../task/runner.interface.js';
import { restoreError } from '../task/task-error.js';
import type { Task, TaskObserver } from '../task/task.js';
import { Call, NOBODY, type Watch } from './call.js';
import { aborted, failed, type Failure, lost, rejected } from './failures.js';
import { RetryAdvice } from './retry-advice.js';
import { RunningCalls } from './running-calls.js';
import { WaitingCalls } from './waiting-calls.js';

/**
 * Admits calls in the order in which they are made. Each thread runs one call. At most `maxQueue`
 * calls wait for a limited time, and further calls are refused.
 */
export class Dispatcher {
  readonly #waiting: WaitingCalls;
  readonly running: RunningCalls;
  readonly #advice = new RetryAdvice();
  #closed = false;

  constructor(
    private readonly runner: Runner,
    maxQueue: number,
    private readonly observer: TaskObserver,
    private readonly reportLostThread: (task: Task, error: unknown) => void,
  ) {
    this.running = new RunningCalls(runner, observer, this.#advice, (call, failure) =>
      this.#abort(call, failure),
    );
    this.#waiting = new WaitingCalls(
      maxQueue,
      () => runner.spare,
      (call) => this.#end(call, this.#rejected(call.task, 'queue-timeout')),
    );
  }

  get queueSize(): number {
    return this.#waiting.size;
  }

  /** How long the queue has been full, in ms. */
  get fullForMs(): number {
    return this.#waiting.fullForMs;
  }

  /** Whether a waiting or running call was made before this time (monotonic ms). */
  hasCallFrom(before: number): boolean {
    return [...this.running, this.#waiting.first].some((call) => call && call.calledAt < before);
  }

  /** Resolves with the result. Rejects with the error of the task, or an exception of this package. */
  submit(
    task: Task,
    args: readonly unknown[],
    contexts: RunRequest['contexts'],
    watch: Watch = NOBODY,
  ): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const request = { task: task.index, args, contexts };
      const call = new Call(task, request, { resolve, reject });
      call.unwatch = watch(() => this.#leave(call));
      // The client may have disconnected already.
      if (call.state === 'over') call.unwatch();
      else this.#admit(call);
    });
  }

  /** Starts waiting calls. Called when a thread may be free, or when the last thread may be gone. */
  pump(): void {
    while (this.#waiting.size > 0 && this.runner.idle > 0) this.#start(this.#waiting.next()!);
    if (this.runner.size === 0) this.#refuseQueued('unavailable');
    if (this.#waiting.size === 0 || this.#closed) return;
    this.runner.expect(this.#waiting.size);
  }

  /** Refuses waiting and later calls, and ends running calls. */
  close(): void {
    this.#closed = true;
    this.#refuseQueued('closing');
    for (const call of this.running) this.#abort(call, aborted(call.task));
  }

  get #canStart(): boolean {
    return this.#waiting.size === 0 && this.runner.idle > 0;
  }

  #admit(call: Call): void {
    const { task, request } = call;
    const refusal = this.#refusal();
    if (refusal !== undefined) return this.#end(call, this.#rejected(task, refusal));
    try {
      // Copies the arguments of a call that must wait, because the caller may change its own. Also
      // copies an error, because a thread on Node 20 cannot read one that is its own cause.
      const stays = this.#canStart && !request.args.some((arg) => arg instanceof Error);
      if (!stays) call.request = copyRequest(request);
    } catch (error) {
      return this.#end(call, failed(uncloneableArguments(task, request, error)));
    }
    if (this.#canStart) return this.#start(call);
    this.#waiting.enter(call);
    this.pump();
  }

  #refusal(): TaskRejection | undefined {
    if (this.#closed) return 'closing';
    if (this.runner.size === 0) return 'unavailable';
    return this.#canStart || this.#waiting.hasPlace ? undefined : 'queue-full';
  }

  #refuseQueued(reason: TaskRejection): void {
    for (let call = this.#waiting.next(); call !== undefined; call = this.#waiting.next()) {
      this.#end(call, this.#rejected(call.task, reason));
    }
  }

  #start(call: Call): void {
    this.running.begin(call);
    try {
      call.run = this.runner.run(call.request);
    } catch (error) {
      // An argument threw an error when it was read.
      return this.#end(call, failed(error));
    }
    call.run.result
      .then(
        (result) => this.#onResult(call, result),
        (error: unknown) => this.#onLost(call, error),
      )
      // If a result causes an error here, only its own call fails.
      .catch((error: unknown) => this.#fail(call, failed(error)));
  }

  #onResult(call: Call, result: RunResult): void {
    if (result.ok) this.#complete(call, result);
    else this.#fail(call, failed(restoreError(result.error, result.types)));
  }

  #onLost(call: Call, error: unknown): void {
    const { task, request, state } = call;
    if (state === 'over') return this.pump(); // a call that was given up has ended
    const isTooDeep = error instanceof RangeError && findUncloneable(request, '') !== undefined;
    if (isTooDeep || (error instanceof DOMException && error.name === 'DataCloneError')) {
      return this.#fail(call, failed(uncloneableArguments(task, request, error)));
    }
    this.reportLostThread(task, error);
    this.#fail(call, lost(task, error));
  }

  #complete(call: Call, result: Completed): void {
    const value = restoreResult(result);
    this.running.end(call);
    call.end();
    const caller = call.release();
    if (caller !== undefined) {
      this.observer.ended(call.task, 'completed');
      caller.resolve(value);
    }
    this.pump();
  }

  #fail(call: Call, failure: Failure): void {
    this.#end(call, failure);
    this.pump();
  }

  #abort(call: Call, failure: Failure): void {
    this.#end(call, failure);
    call.run?.abort();
    this.pump();
  }

  #end(call: Call, failure: Failure): void {
    this.running.end(call);
    call.end();
    this.#refuse(call, failure);
  }

  #refuse(call: Call, { outcome, error }: Failure): void {
    const caller = call.release();
    if (caller === undefined) return;
    this.observer.ended(call.task, outcome);
    caller.reject(error);
  }

  /** The caller's client has disconnected. */
  #leave(call: Call): void {
    if (call.state === 'running') {
      this.#refuse(call, aborted(call.task));
      return this.running.abandon(call);
    }
    this.#waiting.leave(call);
    this.#end(call, aborted(call.task));
  }

  #rejected(task: Task, reason: TaskRejection): Failure {
    return rejected(task, reason, this.#advice.seconds(this.#waiting.size, this.runner.size));
  }
}
