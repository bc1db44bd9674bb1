import { ClusterAddressError } from '../../contract/errors/errors.js';
import {
  closeHandle,
  isOurs,
  parsePrimaryMessage,
  type PrimaryMessage,
  type Refusal,
  type Results,
  seal,
  type WorkerMessage,
} from '../../contract/messages.js';
import { inTime } from '../../contract/process/in-time.js';

type Answer = PrimaryMessage & { readonly type: 'answer' };

/** The fields that distinguish a request from other requests of its type. */
type Request<T extends keyof Results> = { readonly type: T } & Omit<
  WorkerMessage & { readonly type: T },
  'id' | 'stats' | 'body' | 'ageMs'
>;

type Ipc = Pick<
  NodeJS.Process,
  'connected' | 'listenerCount' | 'on' | 'prependOnceListener' | 'send'
>;

/** Only these messages carry a socket. */
const WITH_HANDLE: ReadonlySet<PrimaryMessage['type']> = new Set(['listen', 'adopt', 'connection']);

type More = () => object | Promise<object>;

/** The worker's end of the IPC channel to its primary. */
export class PrimaryChannel {
  #unsent = 0;
  #lastId = 0;
  readonly #waiting = new Map<number, (answer?: Answer) => void>();
  /** Unanswered requests, by their content. */
  readonly #asked = new Map<string, Promise<unknown>>();

  constructor(private readonly ipc: Ipc = process) {}

  /** @param listener gets each non-answer message from the primary, with the socket that it carries. */
  onMessage(listener: (message: Exclude<PrimaryMessage, Answer>, handle: unknown) => void): void {
    this.ipc.on('message', (raw: unknown, handle: unknown) => {
      const message = parsePrimaryMessage(raw);
      const isTaken = isOurs(raw)
        ? message !== undefined && WITH_HANDLE.has(message.type)
        : this.ipc.listenerCount('message') > 1; // the app also listens
      if (!isTaken) closeHandle(handle);
      if (message?.type === 'answer') this.#waiting.get(message.id)?.(message);
      else if (message !== undefined) listener(message, handle);
    });
  }

  /** Calls `listener` once when the channel is closed or the primary has died. Ends pending requests. */
  onClosed(listener: () => void): void {
    // Must run before node:cluster's own listener, because that listener exits the process.
    this.ipc.prependOnceListener('disconnect', () => {
      for (const settle of this.#waiting.values()) settle();
      listener();
    });
  }

  /** Whether the kernel has accepted all messages that were sent. */
  get drained(): boolean {
    return this.#unsent === 0;
  }

  /** Resolves when the kernel has accepted the message, or the channel is closed. Never rejects. */
  send(message: WorkerMessage, handle?: unknown): Promise<void> {
    return new Promise((resolve) => {
      if (!this.ipc.connected || this.ipc.send === undefined) return resolve();
      this.#unsent += 1;
      this.ipc.send(seal(message), handle as undefined, undefined, () => {
        this.#unsent -= 1;
        resolve(); // an error means that the primary has died, which onClosed() reports
      });
    });
  }

  /**
   * Sends a request to the primary. Identical requests are sent once and share the answer.
   *
   * @param more creates the rest of the message. Must not reject.
   * @returns the answer; `undefined` after the timeout or when the channel closes.
   * @throws the primary's error if it refuses the request.
   */
  ask<T extends keyof Results>(
    request: Request<T>,
    timeoutMs = Infinity,
    more: More = () => ({}),
  ): Promise<Results[T] | undefined> {
    if (!this.ipc.connected) return Promise.resolve(undefined);
    const key = JSON.stringify(request);
    let asked = this.#asked.get(key);
    if (asked === undefined) {
      asked = this.#ask(request, timeoutMs, more).finally(() => this.#asked.delete(key));
      this.#asked.set(key, asked);
    }
    return asked as Promise<Results[T] | undefined>;
  }

  async #ask(request: object, timeoutMs: number, more: More): Promise<unknown> {
    const id = (this.#lastId += 1);
    const answered = new Promise<Answer | undefined>((resolve) => this.#waiting.set(id, resolve));
    // Not awaited, because the timeout must also work if the primary is stopped and the channel is full.
    void (async () => this.send({ ...request, ...(await more()), id } as WorkerMessage))();
    const answer = await (Number.isFinite(timeoutMs)
      ? inTime(answered, timeoutMs, () => undefined)
      : answered);
    this.#waiting.delete(id);
    if (answer?.refusal !== undefined) throw errorOf(answer.refusal);
    return answer?.result;
  }
}

function errorOf({ address, ...report }: Refusal): Error {
  return address === undefined
    ? new Error(report.message)
    : new ClusterAddressError(address, report);
}
