/** A reader that is further behind is told so, and subscribes anew. */
const MAX_WAITING = 10_000;

/** How it begins to hear, and ends. */
export interface PubSubSource {
  /** @returns how to end it. */
  subscribe(hear: (payload: unknown) => void): Promise<() => void>;
  /** It is read no more. */
  over(): void;
}

interface Reader<T> {
  readonly resolve: (result: IteratorResult<T>) => void;
  readonly reject: (error: Error) => void;
}

/** What is published, for `for await` and for subscriptions of GraphQL. It hears from its first `next()` on. */
export class PubSubIterator<T> implements AsyncIterableIterator<T> {
  readonly #waiting: T[] = [];
  readonly #readers: Reader<T>[] = [];
  #begun: Promise<() => void> | undefined;
  #failure: Error | undefined;
  #over = false;

  constructor(private readonly source: PubSubSource) {}

  async next(): Promise<IteratorResult<T>> {
    if (!this.#over) await (this.#begun ??= this.source.subscribe((each) => this.#hear(each as T)));
    if (this.#failure !== undefined) {
      const failure = this.#failure;
      this.#failure = undefined;
      throw failure;
    }
    if (this.#over) return { value: undefined, done: true };
    if (this.#waiting.length > 0) return { value: this.#waiting.shift()!, done: false };
    return new Promise((resolve, reject) => void this.#readers.push({ resolve, reject }));
  }

  async return(): Promise<IteratorResult<T>> {
    this.end();
    return { value: undefined, done: true };
  }

  async throw(error: Error): Promise<IteratorResult<T>> {
    this.end();
    throw error;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Nothing more comes; who reads is told. */
  end(failure?: Error): void {
    if (this.#over) return;
    this.#over = true;
    this.#waiting.length = 0;
    this.source.over();
    this.#begun?.then(
      (unsubscribe) => unsubscribe(),
      () => {}, // its reader was told
    );
    if (this.#readers.length === 0) this.#failure = failure;
    for (const { resolve } of this.#readers.splice(0)) resolve({ value: undefined, done: true });
  }

  #hear(payload: T): void {
    if (this.#over) return;
    const reader = this.#readers.shift();
    if (reader !== undefined) return reader.resolve({ value: payload, done: false });
    this.#waiting.push(payload);
    if (this.#waiting.length <= MAX_WAITING) return;
    this.end(
      new Error(
        `more than ${MAX_WAITING} messages waited to be read from ClusterPubSub; subscribe anew, and read faster`,
      ),
    );
  }
}
