import type { PrimaryMessage } from '../../contract/ipc/index.js';

/** Messages that answer what this side asked. */
export type AnswerMessage = PrimaryMessage & {
  type:
    | 'snapshot'
    | 'collected'
    | 'reloaded'
    | 'restarted'
    | 'scaled'
    | 'scale-refused'
    | 'hub'
    | 'hub-refused';
};

/**
 * Requests that wait for an answer of the primary. Each has a deadline
 * (`Infinity`: none), and those alike share one; a late answer finds nobody and is dropped.
 */
export class PendingRequests<T> {
  #lastId = 0;
  readonly #waiting = new Map<number, (answer: T | undefined) => void>();
  #shared: Promise<T | undefined> | undefined;

  constructor(private readonly timeoutMs: number) {}

  /**
   * Asks by `send`, unless a question is already under way, and resolves with
   * the answer, or with `undefined` at the deadline or when the channel closes.
   */
  ask(send: (id: number) => void | Promise<void>): Promise<T | undefined> {
    this.#shared ??= this.askAlone(send).finally(() => (this.#shared = undefined));
    return this.#shared;
  }

  answer(id: number, answer: T): void {
    this.#waiting.get(id)?.(answer);
  }

  /** Nobody will answer any more. */
  abandon(): void {
    for (const settle of this.#waiting.values()) settle(undefined);
  }

  /** The same for a question that is its own each time: none is shared. */
  askAlone(send: (id: number) => void | Promise<void>): Promise<T | undefined> {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      const end = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(id);
      };
      const settle = (value: T | undefined): void => {
        end();
        resolve(value);
      };
      const timer = Number.isFinite(this.timeoutMs)
        ? setTimeout(() => settle(undefined), this.timeoutMs)
        : undefined;
      this.#waiting.set(id, settle);
      // Not awaited: a full channel to a stopped primary takes nothing, and the deadline holds for that too.
      (async () => send(id))().catch((error: unknown) => {
        end();
        reject(error);
      });
    });
  }
}
