import { setTimeout as delay } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import type { Piscina } from 'piscina';
import { compileCacheDirectory } from '../../contract/process/compile-cache.js';
import { environmentOfThread } from '../../contract/process/telemetry.js';
import { classAt, type ExportedClass } from '../task/exported-classes.js';
import { contentsOf } from '../task/parcel.js';
import type { Run, RunRequest, RunResult } from '../task/runner.interface.js';
import { NICE_INCREMENT, type ThreadPlan, type ThreadSettings } from '../thread/plan.js';
import type { Problem } from '../thread/problem.js';
import { THREAD_PROGRAM } from '../thread/thread-program.js';
import type { SentRequest, SentResult, ThreadMessage } from '../thread/thread-host.js';

/** Maximum time for `offload.module` to close, in ms. */
const CLOSE_MS = 1_000;

export interface ThreadEvents {
  /** A ready thread has ended or is ending, by itself or because its call was aborted. */
  lost(): void;
  /** The thread ended by an error while it had no call that could report the error. */
  died(error: unknown): void;
  /** A result has an instance of a class that this process does not know. */
  lostClass(name: string): void;
}

/** `starting → ready → ended`. Only a ready thread is given calls. */
type ThreadState = 'starting' | 'ready' | 'ended';

/** The public members of {@link PoolThread}. */
export type PooledThread = Pick<PoolThread, keyof PoolThread>;

/** One thread. It runs one call at a time. */
export class PoolThread {
  #state: ThreadState = 'starting';
  /** The problems of tasks that cannot be loaded. Rejects if the thread ends before it knows them. */
  readonly report: Promise<readonly Problem[]>;
  readonly exited: Promise<void>;
  /** When the thread became busy or idle, in monotonic ms. */
  since = performance.now();
  #isBusy = false;
  #piscina: Piscina | undefined;
  readonly #opened: Promise<Piscina>;
  #resolveExited!: () => void;

  constructor(
    plan: ThreadPlan,
    private readonly events: ThreadEvents,
  ) {
    this.exited = new Promise((resolve) => (this.#resolveExited = resolve));
    this.#opened = this.#open(plan);
    this.report = this.#opened.then(() => this.#post({ type: 'check' }) as typeof this.report);
    this.#opened.catch(() => this.#resolveExited()); // no thread was started, so none will exit
  }

  get state(): ThreadState {
    return this.#state;
  }

  get isIdle(): boolean {
    return this.#state === 'ready' && !this.#isBusy;
  }

  becomeReady(): void {
    this.#state = 'ready';
    this.since = performance.now();
  }

  run(request: RunRequest): Run {
    const { moved, buffers } = contentsOf(request.args);
    return { result: this.#send({ ...request, buffers }, moved), abort: () => this.#abort() };
  }

  /** Ends an idle thread, after its module has closed. */
  async leave(): Promise<void> {
    this.#state = 'ended';
    if (this.#piscina !== undefined) {
      const closed = this.#post({ type: 'close' }).catch(() => {});
      await Promise.race([closed, delay(CLOSE_MS, undefined, { ref: false })]);
    }
    this.end();
  }

  end(): void {
    this.#state = 'ended';
    // A piscina that is still opening is destroyed as soon as it is open.
    void this.#opened.then((piscina) => piscina.destroy()).catch(() => {});
  }

  /**
   * Each thread has its own piscina. A common piscina ends idle threads without closing their
   * modules, and running threads only by an AbortSignal.
   */
  async #open(plan: ThreadPlan): Promise<Piscina> {
    // Loaded with the first thread, because it takes about 8 MB.
    const { Piscina } = await import('piscina');
    const env = environmentOfThread();
    const piscina = new Piscina({
      filename: THREAD_PROGRAM,
      name: 'handle',
      minThreads: 1,
      maxThreads: 1,
      // Atomics.wait() would block asynchronous work of tasks and of their module.
      atomics: 'disabled',
      recordTiming: false,
      // On Linux the thread sets its own nice value, once it has loaded.
      niceIncrement: process.platform === 'linux' ? 0 : NICE_INCREMENT,
      workerData: { plan, compileCache: compileCacheDirectory() } satisfies ThreadSettings,
      ...(env && { env }),
    });
    const [worker] = piscina.threads as Worker[];
    worker!.once('exit', () => this.#resolveExited());
    piscina.on('error', (error: unknown) => this.events.died(error));
    piscina.on('workerDestroy', () => {
      if (this.#state === 'ended') return;
      const wasReady = this.#state === 'ready';
      this.#state = 'ended';
      // Destroyed before piscina starts another thread, because the pool decides whether another
      // thread is started.
      void piscina.destroy();
      if (wasReady) this.events.lost();
    });
    this.#piscina = piscina;
    return piscina;
  }

  #post(message: ThreadMessage, transferList: readonly ArrayBuffer[] = []): Promise<unknown> {
    return this.#piscina!.run(message, { transferList: transferList as ArrayBuffer[] });
  }

  async #send(call: SentRequest, moved: readonly ArrayBuffer[]): Promise<RunResult> {
    this.#setBusy(true);
    try {
      const result = (await this.#post({ type: 'run', ...call }, moved)) as SentResult;
      return result.places ? await this.#withTypes(result, result.places) : result;
    } finally {
      this.#setBusy(false);
    }
  }

  async #withTypes(
    result: RunResult,
    places: readonly (ExportedClass | string)[],
  ): Promise<RunResult> {
    const classes = places.map(async (place) =>
      typeof place === 'string' ? undefined : classAt(place),
    );
    const types = await Promise.all(classes);
    const lost = places[types.indexOf(undefined)];
    if (result.ok && lost !== undefined)
      this.events.lostClass(typeof lost === 'string' ? lost : lost.name);
    return { ...result, types };
  }

  #setBusy(isBusy: boolean): void {
    this.#isBusy = isBusy;
    this.since = performance.now();
  }

  /** Ends the running call together with the thread. */
  #abort(): void {
    this.end();
    this.events.lost();
  }
}
