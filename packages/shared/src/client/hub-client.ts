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
    const { id, answer } = this.#send(question, body);
    const fail = (why: string): void => this.#end(id, new HubError('timeout', why));
    if (this.#silent) fail('the hub does not answer');
    this.#wait(id, deadlineMs, () => {
      this.#silent = true;
      fail(`the hub did not answer within ${deadlineMs} ms`);
    });
    return (await answer)!;
  }

  /** Whether there never was a connection. Only then do questions wait for a connection. */
  get #isNew(): boolean {
    return !this.open && this.#instance === undefined;
  }

  #send(question: Question, body?: Buffer): { id: number; answer: Promise<Answer | undefined> } {
    const id = (this.#lastId += 1);
    const answer = new Promise<Answer | undefined>((resolve, reject) => {
      this.#pending.set(id, { op: question.op, resolve, reject, timer: undefined });
    });
    try {
      if (!this.tell({ ...question, id } as ToHub, body)) this.#end(id, this.#availability.error());
    } catch (error) {
      this.#end(id, new HubError('refused', (error as Error).message));
    }
    return { id, answer };
  }

  /** Calls `giveUp` after `ms`, unless the question has ended. */
  #wait(id: number, ms: number, giveUp: () => void): void {
    const pending = this.#pending.get(id);
    if (pending === undefined) return;
    const late = (): void => (this.#pending.has(id) ? giveUp() : undefined);
    // The answer may have come while this event loop was busy. Node reads it before setImmediate() runs.
    pending.timer = setTimeout(() => setImmediate(late), Math.max(0, ms));
  }

  /** @param answer `undefined` if the caller stops waiting. */
  #end(id: number, answer: Answer | HubError | undefined): void {
    const pending = this.#pending.get(id);
    if (pending === undefined) return;
    this.#pending.delete(id);
    clearTimeout(pending.timer);
    const failure = answer instanceof HubError ? answer.failure : 'ok';
    if (answer !== undefined) this.noteOutcome(pending.op, failure);
    if (answer instanceof HubError) pending.reject(answer);
    else pending.resolve(answer);
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
    for (const id of this.#pending.keys()) this.#end(id, lost);
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
    const isRefused = header.t === 'refused';
    this.#end(header.id, isRefused ? new HubError('refused', header.why) : { header, body });
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
    const { id, answer } = this.#send(question, body);
    const giveUp = (): void => {
      const leftMs = whileHeard ? this.#heardAt + waitMs - performance.now() : 0;
      if (leftMs > 0) return this.#wait(id, leftMs, giveUp);
      if (this.#pending.has(id)) this.tell({ op: 'cancel', id });
      this.#end(id, undefined);
    };
    this.#wait(id, until - performance.now(), giveUp); // opening the connection may have taken all the time
    signal?.addEventListener('abort', giveUp);
    return answer.finally(() => signal?.removeEventListener('abort', giveUp));
  }
}
