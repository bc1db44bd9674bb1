import { AddressUnavailableError } from '../errors/index.js';
import { type PrimaryMessage, reportError } from '../ipc/index.js';
import type { ClusterSnapshot, ReloadResult, RestartResult } from '../snapshot/index.js';
import type { Asker, WorkerId } from './core/cluster-state.js';

interface Caller {
  resolve(result: unknown): void;
  reject(error: Error): void;
}

/** Who waits for the end of a reload, a restart or a change of scale: callers by a promise, workers by a message. */
export class Askers {
  readonly #callers = new Map<number, Caller>();
  #last = 0;

  constructor(private readonly send: (worker: WorkerId, message: PrimaryMessage) => void) {}

  /** @param ask asks in the name of a new caller. */
  call<Result>(ask: (asker: Asker) => void): Promise<Result> {
    const id = (this.#last += 1);
    return new Promise<Result>((resolve, reject) => {
      this.#callers.set(id, { resolve: resolve as Caller['resolve'], reject });
      ask({ by: 'caller', id });
    });
  }

  reloaded(asker: Asker, result: ReloadResult): void {
    if (asker.by === 'caller') this.#take(asker.id)?.resolve(result);
    else this.send(asker.worker, { type: 'reloaded', id: asker.id, result });
  }

  restarted(asker: Asker, result: RestartResult): void {
    if (asker.by === 'caller') this.#take(asker.id)?.resolve(result);
    else this.send(asker.worker, { type: 'restarted', id: asker.id, result });
  }

  scaled(asker: Asker, snapshot: ClusterSnapshot): void {
    if (asker.by === 'caller') this.#take(asker.id)?.resolve(snapshot);
    else this.send(asker.worker, { type: 'scaled', id: asker.id, snapshot });
  }

  /** A new worker would have nothing to listen on. */
  refused(asker: Asker, error: Error): void {
    if (asker.by === 'caller') return this.#take(asker.id)?.reject(error);
    const { address, cause } =
      error instanceof AddressUnavailableError ? error : { address: '', cause: error };
    const { id, worker } = asker;
    this.send(worker, { type: 'scale-refused', id, address, cause: reportError(cause) });
  }

  #take(id: number): Caller | undefined {
    const caller = this.#callers.get(id);
    this.#callers.delete(id);
    return caller;
  }
}
