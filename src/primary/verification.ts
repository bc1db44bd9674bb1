import { ClusterConfigurationError } from '../errors/index.js';
import type { ErrorReport, WorkerMessage } from '../ipc/index.js';
import type { Served, Surroundings } from './lifecycle.js';
import type { WorkerHandle } from './worker-handle.js';

type Around = Pick<
  Surroundings,
  'options' | 'listening' | 'table' | 'recovery' | 'succession' | 'shutdown' | 'serving'
>;

/**
 * Whether threads can load what they are to run is asked of one worker of each
 * generation, once it is ready: no worker waits for its threads, and what one
 * of them cannot load no other could. Until the answer is there, a cluster has
 * not started, and a reload has not proven its first worker.
 */
export class Verification {
  readonly #proven = new Set<number>();
  #asked: WorkerHandle | undefined;
  /** What the first worker that was ready said. */
  #served: Served | undefined;

  constructor(private readonly around: Around) {}

  ready(worker: WorkerHandle, message: WorkerMessage & { type: 'ready' }): void {
    const { url = this.around.listening.url, endpoints = [], verifiable = false } = message;
    this.#served ??= { url, endpoints };
    worker.verifiable = verifiable;
    this.#ask(worker);
  }

  answered(worker: WorkerHandle, error: ErrorReport | null): void {
    if (this.#asked !== worker) return;
    this.#asked = undefined;
    if (error === null) this.#prove(worker);
    else this.#refuse(worker, error);
    this.#askNext();
  }

  /** If it was asked, another is. */
  left(worker: WorkerHandle): void {
    if (this.#asked !== worker) return;
    this.#asked = undefined;
    this.#askNext();
  }

  /** Of the same generation, or of one whose reload began meanwhile. */
  #askNext(): void {
    const next = this.around.table.workers.find(
      ({ state, unproven }) => state === 'ready' && unproven,
    );
    if (next !== undefined) this.#ask(next);
  }

  #refuse(worker: WorkerHandle, { name, message }: ErrorReport): void {
    const { succession, recovery, shutdown } = this.around;
    worker.unproven = false;
    if (succession.left(worker, `${name}: ${message}`) || recovery.everReady) return;
    shutdown.giveUp(new ClusterConfigurationError(message));
  }

  #ask(worker: WorkerHandle): void {
    // Without methods to offload, and in versions that looked at it before they were ready.
    if (!worker.verifiable || this.#proven.has(worker.identity.generation)) {
      return this.#prove(worker);
    }
    worker.unproven = true;
    if (this.#asked?.state === 'ready') return;
    this.#asked = worker;
    worker.send({ type: 'verify' });
    if (worker.debugged) return;
    worker.after(this.around.options.readyTimeoutMs, () => this.#onOverdue(worker));
  }

  #prove(worker: WorkerHandle): void {
    const { table, recovery, succession, serving } = this.around;
    const { generation } = worker.identity;
    this.#proven.add(generation);
    for (const each of table.workers) {
      if (each.identity.generation === generation) each.unproven = false;
    }
    succession.proven(worker);
    if (recovery.everReady || this.#served === undefined) return;
    recovery.everReady = true;
    serving(this.#served);
  }

  #onOverdue(worker: WorkerHandle): void {
    if (this.#asked !== worker) return;
    const { options, succession } = this.around;
    const detail = `boot timed out: its threads had not loaded within ${options.readyTimeoutMs} ms (readyTimeoutMs)`;
    if (!succession.left(worker, detail)) worker.condemn('boot', `${detail} and it was killed`);
  }
}
