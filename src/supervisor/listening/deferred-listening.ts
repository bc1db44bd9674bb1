import { reportError } from '../../contract/errors/error-report.js';
import type { WorkerHandle } from '../processes/worker-handle.js';
import { formatAddress } from './bound-socket.js';
import type { Listening } from './listening.interface.js';
import { openListening } from './open-listening.js';

/**
 * Binds the default address when the first worker asks for it. An app without an HTTP server never
 * asks, so it can run next to another app that uses the default address.
 */
export class DeferredListening implements Listening {
  #opening: Promise<Listening> | undefined;
  #opened: Listening | undefined;
  #slots: number;
  #closed = false;

  constructor(
    private readonly options: Parameters<typeof openListening>[0],
    private readonly open = openListening,
  ) {
    this.#slots = options.workers;
  }

  get balancing(): Listening['balancing'] {
    return this.#opened?.balancing ?? 'none';
  }

  get url(): string {
    return this.#opened?.url ?? formatAddress(this.options.address);
  }

  get ports(): readonly number[] {
    return this.#opened?.ports ?? [];
  }

  get sockets(): Listening['sockets'] {
    return this.#opened?.sockets ?? [];
  }

  grant(worker: WorkerHandle): void {
    if (this.#opened !== undefined) return this.#opened.grant(worker);
    this.#opening ??= this.#open();
    this.#opening.then(
      (listening) => listening.grant(worker),
      (error: Error) => {
        this.#opening = undefined; // the next worker that asks tries again
        worker.send({ type: 'listen-refused', error: reportError(error.cause ?? error) });
      },
    );
  }

  reserve(slots: number): void {
    this.#slots = Math.max(this.#slots, slots);
    this.#opened?.reserve(slots);
  }

  settle(workers: readonly WorkerHandle[], now: number): void {
    this.#opened?.settle(workers, now);
  }

  close(): void {
    this.#closed = true;
    this.#opened?.close();
  }

  async #open(): Promise<Listening> {
    const opened = await this.open({ ...this.options, workers: this.#slots });
    if (this.#closed) opened.close();
    return (this.#opened = opened);
  }
}
