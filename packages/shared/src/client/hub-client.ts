import {
  MAX_BODY_BYTES,
  MAX_TEXT_LENGTH,
  type FromHub,
  type HubRequest,
  type ToHub,
} from '../wire/protocol.js';

/**
 * Why a request failed. `timeout`: no answer in time. `lost`: there is no connection, or it was lost.
 * `unavailable`: the hub cannot be used now. `refused`: the hub refused it, or it is too large.
 */
export type HubFailure = 'timeout' | 'lost' | 'unavailable' | 'refused';

export class HubError extends Error {
  constructor(
    readonly failure: HubFailure,
    message: string,
  ) {
    super(message);
  }
}

/** @returns the answer; `undefined` if the request failed with a {@link HubError}. */
export function orNone<T>(asked: Promise<T>): Promise<T | undefined> {
  return asked.catch((error: unknown) => {
    if (!(error instanceof HubError)) throw error;
    return undefined;
  });
}

/**
 * Opens a connection to the hub, and reopens it whenever it is lost.
 *
 * @returns a function that sends a message, and returns whether the message was sent. Without a
 *   connection, or if the hub has too many unread bytes, the message is not sent.
 */
export type Dial = (line: LineEvents) => (header: ToHub, body?: Buffer) => boolean;

export interface LineEvents {
  /** @param instance identifies the hub: the path of its socket, which is new for each start. */
  opened(instance: string): void;
  frame(header: FromHub, body: Buffer): void;
  closed(): void;
  /** Called when the hub cannot be used. The line retries, and calls `opened()` on success. */
  unavailable(why: string): void;
}

export interface Answer {
  readonly header: FromHub;
  /** A view of reused memory. */
  readonly body: Buffer;
}

type WithoutId<T> = T extends unknown ? Omit<T, 'id'> : never;
export type Question = WithoutId<Exclude<HubRequest, { op: 'hello' }>>;
export type Push = Extract<FromHub, { t: 'event' | 'said' | 'left' | 'echo' }>;

/** A part of this process that uses the hub. */
export interface HubListener {
  /** @param restarted whether this is a new hub, without the state of the previous hub. */
  opened?(restarted: boolean): void;
  closed?(): void;
  pushed?(push: Push, body: Buffer): void;
}

/** Maximum wait for the first connection, in ms. It includes the start of the hub's thread. */
const FIRST_MS = 3_000;

const AGAIN_MS = 10;

/** Maximum wait for the answer to a request that the hub answers immediately, in ms. */
const ANSWER_MS = 1_000;

/** The only client of the hub in this process. */
export class HubClient implements LineEvents {
  readonly #send: ReturnType<Dial>;
  /** Functions that settle the unanswered requests, by request id. */
  readonly #pending = new Map<number, (answer: Answer | HubError) => void>();
  readonly #listeners = new Set<HubListener>();
  /** Waiting calls to {@link ready}. */
  readonly #waiting = new Set<() => void>();
  #unavailable: string | undefined;
  #instance: string | undefined;
  #lastNumber = 0;
  open = false;
  /** The event emitters of the apps in this process. */
  readonly emitters = new Set<object>();
  /** Request counts by operation and outcome, e.g. `count ok`. */
  readonly outcomes = new Map<string, number>();

  constructor(dial: Dial) {
    this.#send = dial(this);
  }

  /** @returns a function that removes the listener. */
  listen(listener: HubListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Returns a number that is unique among the requests and messages of this process. */
  nextNumber(): number {
    return (this.#lastNumber += 1);
  }

  noteOutcome(what: string, outcome: string, count = 1): void {
    const name = `${what} ${outcome}`;
    this.outcomes.set(name, (this.outcomes.get(name) ?? 0) + count);
  }

  /** Waits for a connection, for at most `withinMs`. @returns whether there is a connection. */
  ready(withinMs: number): Promise<boolean> {
    if (this.open || this.#unavailable !== undefined) return Promise.resolve(this.open);
    return new Promise((resolve) => {
      const settle = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(settle);
        resolve(this.open);
      };
      const timer = setTimeout(settle, withinMs);
      this.#waiting.add(settle);
    });
  }

  /**
   * Sends a request, and waits for its answer. Waits only for the first connection.
   *
   * @param signal ends the wait early.
   * @throws HubError
   */
  async ask(
    question: Question,
    waitMs: number,
    { body, signal }: { readonly body?: Buffer; readonly signal?: AbortSignal } = {},
  ): Promise<Answer> {
    const until = performance.now() + (waitMs || ANSWER_MS);
    if (this.#isNew) await this.ready(Math.min(waitMs || ANSWER_MS, FIRST_MS));
    const id = this.nextNumber();
    return new Promise((resolve, reject) => {
      const settle = (answer: Answer | HubError): void => {
        if (!this.#pending.delete(id)) return;
        clearTimeout(timer);
        signal?.removeEventListener('abort', giveUp);
        const failure = answer instanceof HubError ? answer.failure : 'ok';
        this.noteOutcome(question.op, failure);
        if (answer instanceof HubError) reject(answer);
        else resolve(answer);
      };
      const giveUp = (): void => {
        if (!this.#pending.has(id)) return;
        this.tell({ op: 'cancel', id });
        settle(new HubError('timeout', `the hub did not answer within ${waitMs || ANSWER_MS} ms`));
      };
      this.#pending.set(id, settle);
      // The answer may have arrived while this event loop was busy. Node reads it before setImmediate() runs.
      const timer = setTimeout(() => setImmediate(giveUp), Math.max(0, until - performance.now()));
      signal?.addEventListener('abort', giveUp);
      try {
        if (!this.tell({ ...question, id } as ToHub, body)) settle(this.#error());
      } catch (error) {
        settle(new HubError('refused', (error as Error).message));
      }
    });
  }

  /**
   * Like {@link ask}, but sends the request again if the connection is lost.
   *
   * @throws HubError
   */
  async askPatiently(question: (leftMs: number) => Question, waitMs: number): Promise<Answer> {
    const until = performance.now() + waitMs;
    const left = (): number => Math.max(0, until - performance.now());
    for (;;) {
      const firstMs = this.#isNew ? FIRST_MS : 0;
      if (!this.open && !(await this.ready(Math.max(left(), firstMs)))) throw this.#error();
      try {
        return await this.ask(question(left()), left());
      } catch (error) {
        if ((error as HubError).failure !== 'lost' || left() === 0) throw error;
        // Waits, because the connection may be open although the hub does not read.
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      }
    }
  }

  /**
   * Sends a message, without waiting for an answer. @returns whether the message was sent.
   *
   * @throws Error that names the maximum, if the message or a text in it is too large.
   */
  tell(note: ToHub, body?: Buffer): boolean {
    if (body !== undefined && body.length > MAX_BODY_BYTES) {
      throw new Error(`the body is ${body.length} bytes; the maximum is ${MAX_BODY_BYTES}`);
    }
    for (const text of Object.values(note) as unknown[]) {
      if (typeof text === 'string' && text.length > MAX_TEXT_LENGTH) {
        throw new Error(`names and keys have at most ${MAX_TEXT_LENGTH} characters`);
      }
    }
    return this.#send(note, body);
  }

  opened(instance: string): void {
    const restarted = this.#instance !== undefined && this.#instance !== instance;
    this.#instance = instance;
    this.#unavailable = undefined;
    this.open = true;
    for (const listener of this.#listeners) listener.opened?.(restarted);
    for (const settle of this.#waiting) settle();
  }

  closed(): void {
    this.open = false;
    const lost = new HubError('lost', 'the connection to the hub was lost');
    for (const settle of this.#pending.values()) settle(lost);
    for (const listener of this.#listeners) listener.closed?.();
  }

  unavailable(why: string): void {
    this.#unavailable = why;
    for (const settle of this.#waiting) settle();
  }

  frame(header: FromHub, body: Buffer): void {
    if (!('id' in header)) {
      for (const listener of this.#listeners) listener.pushed?.(header, body);
      return;
    }
    const settle = this.#pending.get(header.id);
    if (settle !== undefined) {
      settle(header.t === 'refused' ? new HubError('refused', header.why) : { header, body });
    } else if (header.t === 'granted') {
      this.tell({ op: 'unlock', grant: header.grant }); // no caller waits for the lock any longer
    }
  }

  /** Whether this process has never had a connection. Only then do requests wait for a connection. */
  get #isNew(): boolean {
    return !this.open && this.#instance === undefined;
  }

  /** The error for a request that could not be sent. */
  #error(): HubError {
    return this.#unavailable === undefined
      ? new HubError('lost', 'there is no connection to the hub')
      : new HubError('unavailable', `the hub is unavailable: ${this.#unavailable}`);
  }
}
