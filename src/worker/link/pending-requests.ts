import type { PrimaryMessage } from '../../contract/ipc/index.js';

/** The primary's answers to requests of this process. `check` has an id but is itself a request. */
export type AnswerMessage = Exclude<
  Extract<PrimaryMessage, { readonly id: number }>,
  { readonly type: 'check' }
>;

type Send = (id: number) => void | Promise<void>;

/** Requests that wait for an answer from the primary. An answer after the deadline is dropped. */
export class PendingRequests {
  #lastId = 0;
  readonly #waiting = new Map<number, (answer: AnswerMessage | undefined) => void>();
  readonly #shared = new Map<string, Promise<AnswerMessage | undefined>>();

  /** Resolves with the answer, or with `undefined` at the deadline or when the channel closes. */
  ask<T extends AnswerMessage['type']>(
    send: Send,
    timeoutMs = Infinity,
  ): Promise<(AnswerMessage & { type: T }) | undefined> {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      const end = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(id);
      };
      const settle = (answer: AnswerMessage | undefined): void => {
        end();
        resolve(answer as (AnswerMessage & { type: T }) | undefined);
      };
      const timer = Number.isFinite(timeoutMs)
        ? setTimeout(() => settle(undefined), timeoutMs)
        : undefined;
      this.#waiting.set(id, settle);
      // Not awaited, so that the deadline also holds if the primary is stopped and its channel is full.
      (async () => send(id))().catch((error: unknown) => {
        end();
        reject(error);
      });
    });
  }

  /** Like {@link ask}, but calls for the same type of answer share one request until it is answered. */
  askOnce<T extends AnswerMessage['type']>(
    type: T,
    send: Send,
    timeoutMs?: number,
  ): Promise<(AnswerMessage & { type: T }) | undefined> {
    const asked = this.#shared.get(type);
    if (asked !== undefined) return asked as Promise<AnswerMessage & { type: T }>;
    const answer = this.ask<T>(send, timeoutMs).finally(() => this.#shared.delete(type));
    this.#shared.set(type, answer);
    return answer;
  }

  answer(message: AnswerMessage): void {
    this.#waiting.get(message.id)?.(message);
  }

  abandon(): void {
    for (const settle of this.#waiting.values()) settle(undefined);
  }
}
