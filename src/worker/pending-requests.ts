/**
 * Requests that wait for an answer of the primary. Each has a deadline, and
 * those alike share one; a late answer finds nobody and is dropped.
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
    this.#shared ??= this.#askNow(send).finally(() => (this.#shared = undefined));
    return this.#shared;
  }

  answer(id: number, answer: T): void {
    this.#waiting.get(id)?.(answer);
  }

  /** Nobody will answer any more. */
  abandon(): void {
    for (const settle of this.#waiting.values()) settle(undefined);
  }

  async #askNow(send: (id: number) => void | Promise<void>): Promise<T | undefined> {
    const id = ++this.#lastId;
    const answer = new Promise<T | undefined>((resolve) => {
      const timer = setTimeout(() => settle(undefined), this.timeoutMs);
      const settle = (value: T | undefined): void => {
        clearTimeout(timer);
        this.#waiting.delete(id);
        resolve(value);
      };
      this.#waiting.set(id, settle);
    });
    await send(id);
    return answer;
  }
}
