import { ClusterAddressError } from '../../contract/errors/index.js';
import { reportError } from '../../contract/errors/error-report.js';
import type { PrimaryMessage } from '../../contract/messages.js';
import type {
  ClusterSnapshot,
  ReloadResult,
  RestartResult,
} from '../../contract/snapshot/index.js';
import type { ClusterEvent } from '../decide/cluster-event.js';
import type { Requester, WorkerId } from '../decide/cluster-state.js';
import type { Answer, Effect } from '../decide/effect.js';

interface Caller {
  resolve(result: unknown): void;
  reject(error: Error): void;
}

/** Requests to reload, restart or scale. A caller gets a promise, a worker gets a message. */
export class Requests {
  readonly #callers = new Map<number, Caller>();
  #last = 0;

  constructor(
    private readonly send: (worker: WorkerId, message: PrimaryMessage) => void,
    private readonly post: (event: ClusterEvent) => void,
    private readonly snapshot: () => ClusterSnapshot,
  ) {}

  /** Replaces every worker by a new worker that runs the program as it is on disk now. */
  readonly reload = (reason: string): Promise<ReloadResult> =>
    this.#ask((requester) => ({ type: 'reload', reason, requester }));

  /**
   * Resolves once new workers are ready or have failed, and surplus workers have exited.
   *
   * @throws ClusterAddressError if a new worker would have no socket to listen on.
   */
  readonly scale = (workers: number, reason: string): Promise<ClusterSnapshot> =>
    this.#ask((requester) => ({ type: 'scale', workers, reason, requester }));

  /** Replaces the worker of one slot by a new one of the same release, without a gap. */
  readonly restart = (slot: number, reason: string): Promise<RestartResult> =>
    this.#ask((requester) => ({ type: 'restart', slot, reason, requester }));

  answer({ requester, answer }: Effect & { readonly type: 'answer' }): void {
    if (requester.by === 'worker') {
      return this.send(requester.worker, this.#messageOf(requester.id, answer));
    }
    const caller = this.#callers.get(requester.id);
    this.#callers.delete(requester.id);
    if (answer.type === 'scale-refused') caller?.reject(answer.error);
    else caller?.resolve(answer.type === 'scaled' ? this.snapshot() : answer.result);
  }

  #messageOf(id: number, answer: Answer): PrimaryMessage {
    if (answer.type === 'scaled') return { type: 'answer', id, result: this.snapshot() };
    if (answer.type !== 'scale-refused') return { type: 'answer', id, result: answer.result };
    const { error } = answer;
    const { address, cause } =
      error instanceof ClusterAddressError ? error : { address: undefined, cause: error };
    return { type: 'answer', id, refusal: { ...reportError(cause), address } };
  }

  /** Posts a request of a new caller. @returns a promise of the answer. */
  #ask<Result>(eventOf: (requester: Requester) => ClusterEvent): Promise<Result> {
    const id = (this.#last += 1);
    return new Promise<Result>((resolve, reject) => {
      this.#callers.set(id, { resolve, reject });
      this.post(eventOf({ by: 'caller', id }));
    });
  }
}
