import { MAX_BODY_BYTES, tooLarge } from '../wire/limits.js';
import type { FromHub, ToHub } from '../wire/protocol.js';
import { Availability } from './availability.js';
import type {
  Answer,
  AskOptions,
  Dial,
  Emitter,
  HubListener,
  Line,
  LineEvents,
  Pending,
  Question,
} from './hub-client.interface.js';
import { HubError } from './hub-error.js';

/** Maximum wait for the first connection, in ms. It includes the start of the hub's thread. */
const FIRST_MS = 3_000;

const AGAIN_MS = 10;

/** Maximum wait for the answer to a question that the hub answers at once, in ms. */
const ANSWER_MS = 1_000;

/** Asks the hub questions, for the whole process. */
export class HubClient implements LineEvents {
  readonly #line: Line;
  readonly #pending = new Map<number, Pending>();
  readonly #listeners = new Set<HubListener>();
  readonly #availability = new Availability();
  #instance: string | undefined;
  #lastId = 0;
  /** Whether the hub has not answered a question in time, and has sent nothing since. */
  #silent = false;
  #heardAt = -Infinity;
  /** The event emitters of the apps of this process. */
  readonly emitters = new Set<Emitter>();
  /** The number of the last echo that was asked for, in all {@link HubChannels} of the process. */
  lastEcho = 0;
  /** Counts of questions, by request and outcome: `count ok`. */
  readonly outcomes = new Map<string, number>();

  constructor(dial: Dial) {
    this.#line = dial(this);
  }

  /** @returns a function that removes the listener. */
  listen(listener: HubListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  get open(): boolean {
    return this.#availability.open;
  }

  /** Whether the hub cannot be used now, so that callers do not wait. The line still retries. */
  get isUnavailable(): boolean {
    return this.#availability.isImpossible;
  }

  /** Waits for a connection, for at most `withinMs`. @returns whether there is a connection. */
  ready(withinMs: number): Promise<boolean> {
    return this.#availability.ready(withinMs);
  }

  /**
   * Asks a question that the hub answers at once. If the hub is silent, the question is sent, and
   * the call fails without a wait.
   *
   * @throws HubError
   */
  async ask(question: Question, deadlineMs: number, body?: Buffer): Promise<Answer> {
    if (this.#isNew) await this.ready(Math.min(deadlineMs, FIRST_MS));
    return this.#send((this.#lastId += 1), question, deadlineMs, body);
  }

  /** Whether there never was a connection. Only then do questions wait for a connection. */
  get #isNew(): boolean {
    return !this.open && this.#instance === undefined;
  }

  /** @param deadlineMs `Infinity` if the caller ends the wait. */
  #send(id: number, question: Question, deadlineMs: number, body?: Buffer): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const settle = (answer: Answer | HubError): void => {
        this.#pending.delete(id);
        if (answer instanceof HubError) reject(answer);
        else resolve(answer);
      };
      const fail = (error: HubError): void => {
        this.noteOutcome(question.op, error.failure);
        settle(error);
      };
      try {
        if (!this.tell({ ...question, id } as ToHub, body)) return fail(this.#availability.error());
      } catch (error) {
        return fail(new HubError('refused', (error as Error).message));
      }
      if (deadlineMs === Infinity) {
        return void this.#pending.set(id, { op: question.op, settle, timer: undefined });
      }
      if (this.#silent) return fail(new HubError('timeout', 'the hub does not answer'));
      const giveUp = (): void => {
        if (!this.#pending.has(id)) return;
        this.#silent = true;
        fail(new HubError('timeout', `the hub did not answer within ${deadlineMs} ms`));
      };
      // The answer may have come while this event loop was busy. Node reads it before setImmediate() runs.
      const timer = setTimeout(() => setImmediate(giveUp), deadlineMs);
      this.#pending.set(id, { op: question.op, settle, timer });
    });
  }

  /** Sends a message that is not answered, as {@link Line.send} does. */
  tell(note: ToHub, body?: Buffer): boolean {
    if (body !== undefined && body.length > MAX_BODY_BYTES) {
      throw new Error(tooLarge(body.length, MAX_BODY_BYTES));
    }
    return this.#line.send(note, body);
  }

  /**
   * Like {@link askUntil}, but asks again if the connection is lost.
   *
   * @throws HubError if the hub refuses the question, or cannot be used.
   */
  async askPatiently(
    question: (leftMs: number) => Question,
    waitMs: number,
  ): Promise<Answer | undefined> {
    const until = performance.now() + waitMs;
    const left = (): number => Math.max(0, until - performance.now());
    for (;;) {
      const first = this.#instance === undefined ? FIRST_MS : 0;
      if (!this.open && !(await this.ready(Math.max(left(), first)))) {
        if (this.isUnavailable) throw this.#availability.error();
        return undefined;
      }
      try {
        const leftMs = left();
        return await this.askUntil(question(leftMs), leftMs);
      } catch (error) {
        if ((error as HubError).failure === 'refused') throw error;
        if (left() === 0) return undefined;
        // Waits here, because the connection may be open although the hub does not read.
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      }
    }
  }

  opened(instance: string): void {
    const anew = this.#instance !== undefined && this.#instance !== instance;
    this.#instance = instance;
    this.#silent = false;
    this.#availability.opened();
    for (const listener of this.#listeners) listener.opened?.(anew);
    this.#availability.tellWaiting();
  }

  closed(): void {
    this.#availability.open = false;
    const lost = new HubError('lost', 'the connection to the hub was lost');
    for (const { op, settle, timer } of this.#pending.values()) {
      clearTimeout(timer);
      this.noteOutcome(op, 'lost');
      settle(lost);
    }
    for (const listener of this.#listeners) listener.closed?.();
  }

  unavailable(why: string): void {
    this.#availability.impossible(why);
  }

  drained(): void {
    for (const listener of this.#listeners) listener.drained?.();
  }

  frame(header: FromHub, body: Buffer): void {
    this.#silent = false;
    this.#heardAt = performance.now();
    if (header.t === 'event') {
      for (const listener of this.#listeners) listener.pushed?.(header, body);
      return;
    }
    if (header.t === 'said' || header.t === 'left' || header.t === 'echo') {
      for (const listener of this.#listeners) listener.heard?.(header, body);
      return;
    }
    const pending = this.#pending.get(header.id);
    // The reply belongs to a request that another worker sent to the previous hub.
    if (header.t === 'reply' && pending?.op !== 'publish') return;
    if (pending === undefined) {
      // Returns the lock, because no caller waits for the lock any more.
      if (header.t === 'granted') this.tell({ op: 'unlock', grant: header.grant });
      return;
    }
    clearTimeout(pending.timer);
    if (header.t === 'refused') {
      this.noteOutcome(pending.op, 'refused');
      return pending.settle(new HubError('refused', header.why));
    }
    this.noteOutcome(pending.op, 'ok');
    pending.settle({ header, body });
  }

  noteOutcome(what: string, outcome: string, count = 1): void {
    const name = `${what} ${outcome}`;
    this.outcomes.set(name, (this.outcomes.get(name) ?? 0) + count);
  }

  /**
   * Asks a question that the hub may answer late. The hub may hang, so both ends measure the wait.
   *
   * @returns `undefined` without an answer in time.
   * @throws HubError
   */
  async askUntil(
    question: Question,
    waitMs: number,
    { body, signal, whileHeard }: AskOptions = {},
  ): Promise<Answer | undefined> {
    const until = performance.now() + (waitMs === 0 ? ANSWER_MS : waitMs);
    if (this.#isNew) await this.ready(Math.min(waitMs, FIRST_MS));
    const id = (this.#lastId += 1);
    const asked = this.#send(id, question, Infinity, body);
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout;
      const wait = (leftMs: number): void => {
        timer = setTimeout(() => setImmediate(giveUp), Math.max(0, leftMs));
      };
      const giveUp = (): void => {
        const leftMs = whileHeard ? this.#heardAt + waitMs - performance.now() : 0;
        if (leftMs > 0 && this.#pending.has(id)) return wait(leftMs);
        if (!this.#pending.delete(id)) return;
        this.tell({ op: 'cancel', id });
        resolve(undefined);
      };
      wait(until - performance.now()); // opening the connection may have taken all the time
      signal?.addEventListener('abort', giveUp);
      asked.then(resolve, reject).finally(() => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', giveUp);
      });
    });
  }
}
