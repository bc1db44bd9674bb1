import type { PrimaryMessage } from '../../contract/ipc/index.js';

/** Messages that answer a question of this side. The primary itself asks by `check`. */
export type AnswerMessage = Exclude<
  Extract<PrimaryMessage, { readonly id: number }>,
  { readonly type: 'check' }
>;

/** Sends a question, numbered by its id. */
type Send = (id: number) => void | Promise<void>;

/** Questions that wait for an answer of the primary. A late answer finds nobody and is dropped. */
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
      // Not awaited: a full channel to a stopped primary takes nothing, and the deadline holds for that too.
      (async () => send(id))().catch((error: unknown) => {
        end();
        reject(error);
      });
    });
  }

  /** The same for a question that all who ask it at one time share. Its name is the type of the answer. */
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

  /** Nobody will answer any more. */
  abandon(): void {
    for (const settle of this.#waiting.values()) settle(undefined);
  }
}
