import type { TaskRejection } from '../offload.exceptions.js';
import { copyRequest, keyOf, uncloneableArguments } from '../task/arguments.js';
import { findUncloneable } from '../task/cloneable.js';
import { restoreResult } from '../task/parcel.js';
import type { Completed, Run, Runner, RunRequest, RunResult } from '../task/runner.interface.js';
import { restoreError } from '../task/task-error.js';
import type { Task, TaskObserver } from '../task/task.js';
import { Call, NOBODY, type Waiter, type Watch, watchClient } from './call.js';
import { aborted, failed, failedWith, type Failure, lost, rejected } from './failures.js';
import { Paced } from './paced.js';
import { RetryAdvice } from './retry-advice.js';
import { RunningCalls } from './running-calls.js';
import { WaitingCalls } from './waiting-calls.js';

/**
 * Admits calls in the order in which they are made. Each thread runs one call. At most `maxQueue`
 * calls wait for a limited time, and further calls are refused. The calls that have waited longest
 * are sent ahead to busy threads, and count as waiting until they begin.
 */
export class Dispatcher {
  readonly #waiting: WaitingCalls;
  readonly running: RunningCalls;
  /** Calls that later equal calls may join, by the key of task and arguments. */
  readonly #shared = new Map<string, Call>();
  /** Sends the results of calls with several waiters, paced because results may be large. */
  readonly #answers = new Paced<() => void>((answer) => answer());
  readonly #advice = new RetryAdvice();
  #closed = false;

  constructor(
    private readonly runner: Runner,
    private readonly maxQueue: number,
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
    trace?: Waiter['trace'],
  ): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter = { call: undefined, trace, resolve, reject, unwatch: () => {} };
      const isGone = watchClient(waiter, watch, () => this.#leave(waiter));
      if (isGone) this.#turnAway(waiter, task, aborted(task));
      else this.#admit(task, { task: task.index, args, contexts }, waiter);
    });
  }

  /** Starts waiting calls. Called when a thread may be free, or when the last thread may be gone. */
  pump(): void {
    while (this.#waiting.size > 0 && this.runner.idle > 0) {
      const call = this.#waiting.next();
      if (call === undefined) break;
      this.#start(call);
    }
    if (this.runner.size === 0) this.#refuseQueued('unavailable');
    if (this.#waiting.size === 0 || this.#closed) return;
    this.runner.expect(this.#waiting.size);
    this.#waiting.sendAhead(this.runner, (call) => this.#onBegun(call));
  }

  /** Refuses waiting and later calls, and ends running calls. */
  close(): void {
    this.#closed = true;
    this.#refuseQueued('closing');
    for (const call of this.running) this.#abort(call, aborted(call.task));
  }

  #canStart(task: Task): boolean {
    if (this.runner.inlineFor?.(task) !== undefined) return true;
    return this.#waiting.size === 0 && this.runner.idle > 0;
  }

  #admit(task: Task, request: RunRequest, waiter: Waiter): void {
    // If a waiting call can begin already, it begins before this call.
    if (this.#waiting.size > 0) this.pump();
    let call: Call;
    try {
      const key = task.coalesce ? keyOf(task, request.args) : undefined;
      const same = key === undefined ? undefined : this.#shared.get(key);
      if (same !== undefined && same.waiters.size <= this.maxQueue) return same.addWaiter(waiter);
      const refusal = same === undefined ? this.#refusal(task) : 'queue-full';
      if (refusal !== undefined) return this.#turnAway(waiter, task, this.#rejected(task, refusal));
      // Copies the arguments of a call that must wait, because the caller may change its own. Also
      // copies an error, because a thread on Node 20 cannot read one that is its own cause.
      const stays = this.#canStart(task) && !request.args.some((arg) => arg instanceof Error);
      const kept = stays ? request : copyRequest(request);
      call = new Call(task, kept, key, waiter.trace);
    } catch (error) {
      return this.#turnAway(waiter, task, failedWith(uncloneableArguments(task, request, error)));
    }
    call.addWaiter(waiter);
    if (call.key !== undefined) this.#shared.set(call.key, call);
    if (this.#canStart(task)) return this.#start(call, this.runner.inlineFor?.(task));
    this.#waiting.enter(call);
    this.pump();
  }

  #turnAway(waiter: Waiter, task: Task, { outcome, error }: Failure): void {
    waiter.unwatch();
    this.observer.ended(task, outcome);
    waiter.reject(error());
  }

  #refusal(task: Task): TaskRejection | undefined {
    if (this.#closed) return 'closing';
    if (this.runner.size === 0) return 'unavailable';
    return this.#canStart(task) || this.#waiting.hasPlace ? undefined : 'queue-full';
  }

  #refuseQueued(reason: TaskRejection): void {
    for (let call = this.#waiting.next(); call !== undefined; call = this.#waiting.next()) {
      this.#end(call, this.#rejected(call.task, reason));
    }
  }

  /** A thread has begun a call that was sent ahead to it. */
  #onBegun(call: Call): void {
    this.running.begin(call);
    this.#follow(call, call.offer!);
    if (this.#closed) this.#abort(call, aborted(call.task));
    else if (call.waiters.size === 0) this.running.abandon(call);
  }

  #start(call: Call, runner: Pick<Runner, 'run'> = this.runner): void {
    this.running.begin(call);
    try {
      this.#follow(call, runner.run(call.request));
    } catch (error) {
      // An argument threw an error when it was read.
      this.#end(call, failedWith(error));
    }
  }

  #follow(call: Call, run: Run): void {
    call.run = run;
    run.result
      .then(
        (result) => this.#onResult(call, result),
        (error: unknown) => this.#onLost(call, error),
      )
      // If a result causes an error here, only its own call fails.
      .catch((error: unknown) => this.#fail(call, failedWith(error)));
  }

  #onResult(call: Call, result: RunResult): void {
    if (result.cpuMs !== undefined) this.observer.computed(call.task, result.cpuMs);
    if (call.state === 'over') return this.pump(); // a call that was given up has ended
    call.trace?.ran(result.ran);
    if (result.ok) return this.#complete(call, result);
    const failure = failed(() => restoreError(result.error));
    this.#fail(call, failure);
  }

  #onLost(call: Call, error: unknown): void {
    const { task, request, state } = call;
    if (state === 'over') return this.pump();
    const isTooDeep = error instanceof RangeError && findUncloneable(request, '') !== undefined;
    if (isTooDeep || (error instanceof DOMException && error.name === 'DataCloneError')) {
      return this.#fail(call, failedWith(uncloneableArguments(task, request, error)));
    }
    this.reportLostThread(task, error);
    this.#fail(call, lost(task, error));
  }

  #complete(call: Call, result: Completed): void {
    this.#unshare(call);
    this.running.end(call);
    call.end((waiter, first) => {
      this.observer.ended(call.task, first ? 'completed' : 'coalesced');
      // The result needs no copy: it was copied when it left the thread.
      if (call.key === undefined) waiter.resolve(restoreResult(result));
      // Each waiter gets its own copy, so that it does not see the changes of another waiter.
      else this.#answers.push(() => waiter.resolve(restoreResult(structuredClone(result))));
    });
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

  #end(call: Call, { outcome, error }: Failure): void {
    this.#unshare(call);
    this.running.end(call);
    call.end((waiter) => {
      this.observer.ended(call.task, outcome);
      waiter.reject(error());
    });
  }

  /** A waiter's client has disconnected. If the call has no other waiter, the call ends. */
  #leave(waiter: Waiter): void {
    const { call } = waiter;
    if (call === undefined || !call.waiters.delete(waiter)) return;
    this.#turnAway(waiter, call.task, aborted(call.task));
    if (call.waiters.size > 0) return;
    this.#unshare(call);
    if (call.state === 'waiting') {
      if (!call.takeBack()) return;
      this.#waiting.leave(call);
      return this.#end(call, aborted(call.task));
    }
    this.running.abandon(call);
  }

  /** Later calls no longer join this call. Another call may already have the key. */
  #unshare(call: Call): void {
    const { key } = call;
    if (key !== undefined && this.#shared.get(key) === call) this.#shared.delete(key);
  }

  #rejected(task: Task, reason: TaskRejection): Failure {
    return rejected(task, reason, this.#advice.seconds(this.#waiting.size, this.runner.size));
  }
}
