import { tooLarge } from '../wire/codec.js';
import { type FromHub, MAX_BODY_BYTES, type ToHub } from '../wire/protocol.js';
import { Availability } from './availability.js';
import { HubError, type HubFailure } from './hub-error.js';
import type { HubListener } from './hub-listener.interface.js';
import type { Dial, Line, LineEvents } from './line.js';
import type { Answer, Pending, Question } from './question.js';

interface Emitter {
  listeners(event: string): readonly unknown[];
}

/** The first connection has to wait for a thread to start. */
const FIRST_MS = 3_000;

const AGAIN_MS = 10;

/** For the answer to a question that the hub answers at once. */
const ANSWER_MS = 1_000;

/** What a process asks of the hub. */
export class HubClient implements LineEvents {
  readonly #line: Line;
  readonly #pending = new Map<number, Pending>();
  readonly #listeners = new Set<HubListener>();
  readonly #availability = new Availability();
  #instance: string | undefined;
  #lastId = 0;
  /** It let a question wait for too long, and has said nothing since. */
  #silent = false;
  /** Those of this process that hear events of the hub, one of each of its apps. */
  readonly emitters = new Set<Emitter>();
  /** Of echoes of channels: their numbers are of the process, whichever object asks. */
  lastEcho = 0;
  /** Questions by what was asked and how it ended, as `count ok`. */
  readonly outcomes = new Map<string, number>();

  constructor(dial: Dial) {
    this.#line = dial(this);
  }

  /** @returns what ends that. */
  listen(listener: HubListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  get open(): boolean {
    return this.#availability.open;
  }

  /** There can be no hub now: nobody waits for one. It is tried again in the background. */
  get isUnavailable(): boolean {
    return this.#availability.isImpossible;
  }

  /** Resolves once there is a connection; with `false` if there is none by then, or there can be none. */
  ready(withinMs: number): Promise<boolean> {
    return this.#availability.ready(withinMs);
  }

  /**
   * Asks. While the hub is silent nobody waits for it: the question is sent, and fails at once.
   *
   * @param deadlineMs `Infinity`: the hub says when.
   * @throws HubError
   */
  async ask(question: Question, deadlineMs: number, body?: Buffer): Promise<Answer> {
    if (this.#isNew) await this.ready(Math.min(deadlineMs, FIRST_MS));
    return this.#send((this.#lastId += 1), question, deadlineMs, body);
  }

  /** It was never connected: who asks waits for that. */
  get #isNew(): boolean {
    return !this.open && this.#instance === undefined;
  }

  #send(id: number, question: Question, deadlineMs: number, body?: Buffer): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const settle = (answer: Answer | HubError): void => {
        this.#pending.delete(id);
        if (answer instanceof HubError) reject(answer);
        else resolve(answer);
      };
      const end = (failure: HubFailure, message: string): void => {
        this.noteOutcome(question.op, failure);
        settle(new HubError(failure, message));
      };
      try {
        if (!this.tell({ ...question, id } as ToHub, body)) {
          const { failure, message } = this.#availability.error();
          return end(failure, message);
        }
      } catch (error) {
        return end('refused', (error as Error).message);
      }
      if (deadlineMs === Infinity) {
        return void this.#pending.set(id, { op: question.op, settle, timer: undefined });
      }
      if (this.#silent) return end('timeout', 'the hub does not answer');
      // An answer may have come while this event loop was busy: it is read first.
      const timer = setTimeout(
        () =>
          setImmediate(() => {
            if (!this.#pending.has(id)) return;
            this.#silent = true;
            end('timeout', `the hub did not answer within ${deadlineMs} ms`);
          }),
        deadlineMs,
      );
      this.#pending.set(id, { op: question.op, settle, timer });
    });
  }

  /**
   * Says what is not answered.
   *
   * @returns whether it was sent: not while there is no connection, or the hub does not read.
   * @throws Error with the limit, if it is too large.
   */
  tell(note: ToHub, body?: Buffer): boolean {
    if (body !== undefined && body.length > MAX_BODY_BYTES) {
      throw new Error(tooLarge(body.length, MAX_BODY_BYTES));
    }
    return this.#line.send(note, body);
  }

  /**
   * Asks for what may take long. Asks again where the hub is lost.
   *
   * @returns `undefined` where there is no answer within that time.
   * @throws HubError if the hub refuses it, or there can be no hub.
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
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS)); // it may be open, and not reading
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
    if (header.t === 'event') {
      for (const listener of this.#listeners) listener.pushed?.(header, body);
      return;
    }
    if (header.t === 'said' || header.t === 'left' || header.t === 'echo') {
      for (const listener of this.#listeners) listener.heard?.(header, body);
      return;
    }
    const pending = this.#pending.get(header.id);
    // It is to a request of another worker, of the hub before this one.
    if (header.t === 'reply' && pending?.op !== 'publish') return;
    // Nobody waits for it any more: it is for others.
    if (pending === undefined) {
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
   * Asks for what the hub may take its time for. The hub keeps it; this end does, too, since the hub may hang.
   *
   * @param signal has it give up before.
   * @returns `undefined` where there is no answer by then.
   * @throws HubError
   */
  async askUntil(
    question: Question,
    waitMs: number,
    { body, signal }: { readonly body?: Buffer; readonly signal?: AbortSignal } = {},
  ): Promise<Answer | undefined> {
    const until = performance.now() + (waitMs === 0 ? ANSWER_MS : waitMs);
    if (this.#isNew) await this.ready(Math.min(waitMs, FIRST_MS));
    const id = (this.#lastId += 1);
    const asked = this.#send(id, question, Infinity, body);
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        if (!this.#pending.delete(id)) return;
        this.tell({ op: 'cancel', id });
        resolve(undefined);
      };
      const timer = setTimeout(
        () => setImmediate(giveUp),
        Math.max(0, until - performance.now()), // the connection may have taken all of it
      );
      signal?.addEventListener('abort', giveUp);
      asked.then(resolve, reject).finally(() => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', giveUp);
      });
    });
  }
}
