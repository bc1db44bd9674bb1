import { AddressUnavailableError } from '../../contract/errors/index.js';
import { type PrimaryMessage, reportError } from '../../contract/ipc/index.js';
import type {
  ClusterSnapshot,
  ReloadResult,
  RestartResult,
} from '../../contract/snapshot/index.js';
import type { ClusterEvent } from '../decide/cluster-event.js';
import type { Asker, WorkerId } from '../decide/cluster-state.js';
import type { Effect } from '../decide/effect.js';

type Answer = Extract<
  Effect,
  { type: 'answer-reload' | 'answer-restart' | 'answer-scale' | 'refuse-scale' }
>;

interface Caller {
  resolve(result: unknown): void;
  reject(error: Error): void;
}

/**
 * Asks for a reload, a restart or a change of scale, and tells the asker the outcome: callers by a
 * promise, workers by a message.
 */
export class Askers {
  readonly #callers = new Map<number, Caller>();
  #last = 0;

  constructor(
    private readonly send: (worker: WorkerId, message: PrimaryMessage) => void,
    private readonly post: (event: ClusterEvent) => void,
  ) {}

  /** Replaces every worker by one of the program as it is on disk now. */
  readonly reload = (reason: string): Promise<ReloadResult> =>
    this.#ask((asker) => ({ type: 'reload', reason, asker }));

  /**
   * Resolves once there are as many workers, or those that are missing have failed.
   *
   * @throws AddressUnavailableError where a new one would have nothing to listen on.
   */
  readonly scale = (workers: number, reason: string): Promise<ClusterSnapshot> =>
    this.#ask((asker) => ({ type: 'scale', workers, reason, asker }));

  /**
   * Replaces the worker of one slot without a gap, by one of the program that it runs.
   *
   * @param snapshotTo unix socket that takes a snapshot of the heap of the old one.
   */
  readonly restart = (slot: number, reason: string, snapshotTo?: string): Promise<RestartResult> =>
    this.#ask((asker) => ({ type: 'restart', slot, reason, asker, snapshotTo }));

  /** @param snapshot of the cluster as it is now. */
  answer(effect: Answer, snapshot: () => ClusterSnapshot): void {
    switch (effect.type) {
      case 'answer-reload':
        return this.reloaded(effect.asker, effect.result);
      case 'answer-restart':
        return this.restarted(effect.asker, effect.result);
      case 'answer-scale':
        return this.scaled(effect.asker, snapshot());
      case 'refuse-scale':
        return this.refused(effect.asker, effect.error);
    }
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

  /** Asks in the name of a new caller. */
  #ask<Result>(eventOf: (asker: Asker) => ClusterEvent): Promise<Result> {
    const id = (this.#last += 1);
    return new Promise<Result>((resolve, reject) => {
      this.#callers.set(id, { resolve: resolve as Caller['resolve'], reject });
      this.post(eventOf({ by: 'caller', id }));
    });
  }

  #take(id: number): Caller | undefined {
    const caller = this.#callers.get(id);
    this.#callers.delete(id);
    return caller;
  }
}
