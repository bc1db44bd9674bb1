import { createConnection } from 'node:net';
import { HubCore, SWEEP_MS, type WorkerMessage } from '../thread/hub-core.js';
import { type Frame, FrameSocket, NO_BODY } from '../wire/frame-socket.js';
import { type FromHub, HUB_VERSION, type Peer, type ToHub } from '../wire/protocol.js';
import type { Dial, LineEvents } from './hub-client.js';

const FIRST_RETRY_MS = 10;
const MAX_RETRY_MS = 1_000;

/** Maximum number of bytes unread by the hub. Beyond this, it is hung or lagging, and no more requests are sent. */
const MAX_UNSENT_BYTES = 24 * 1024 * 1024;

/** Messages that are sent even above that maximum. Otherwise the hub would keep a lock or a waiting request forever. */
const GIVES_BACK: ReadonlySet<ToHub['op']> = new Set(['unlock', 'cancel']);

/** The connection of a worker to the hub. */
class SocketLine {
  #path = '';
  #frames: FrameSocket | undefined;
  #open = false;
  #retryMs = FIRST_RETRY_MS;
  #warned: string | undefined;

  constructor(
    private readonly find: () => Promise<string>,
    private readonly slot: number,
    private readonly warn: (message: string) => void,
    private readonly events: LineEvents,
    private readonly over: AbortSignal | undefined,
  ) {
    void this.#connect();
  }

  readonly send = (header: ToHub, body?: Buffer): boolean =>
    this.#open && this.#frames!.send(header, body, GIVES_BACK.has(header.op));

  async #connect(): Promise<void> {
    try {
      this.#path = await this.find();
      const socket = createConnection({ path: this.#path });
      socket.unref(); // only the app's servers keep the process alive
      const onFrame = (frame: Frame): void => this.#onFrame(frame as Frame<FromHub>);
      const onClose = (): void => {
        const wasOpen = this.#open;
        this.#open = false;
        if (wasOpen) this.events.closed();
        this.#again();
      };
      this.#frames = new FrameSocket(socket, onFrame, onClose, MAX_UNSENT_BYTES);
      this.#frames.send({ op: 'hello', id: 0, v: HUB_VERSION, slot: this.slot });
    } catch (error) {
      this.#cannot((error as Error).message);
      this.#again();
    }
  }

  #onFrame({ header: message, body }: Frame<FromHub>): void {
    if (this.#open) return this.events.frame(message, body);
    if (message.t === 'refused') {
      this.#cannot(message.why);
      throw new Error(message.why); // the error closes the connection
    }
    if (message.t !== 'welcome') return;
    this.#open = true;
    this.#warned = undefined;
    this.#retryMs = FIRST_RETRY_MS;
    this.events.opened(this.#path);
  }

  /** Retries every second. Logs a warning, unless the last warning was the same. */
  #cannot(why: string): void {
    if (why !== this.#warned) this.warn(`the hub is unavailable: ${why}; retrying`);
    this.#warned = why;
    this.#retryMs = MAX_RETRY_MS;
    this.events.unavailable(why);
  }

  #again(): void {
    if (this.over?.aborted) return;
    const jittered = this.#retryMs * (0.75 + Math.random() / 2);
    this.#retryMs = Math.min(2 * this.#retryMs, MAX_RETRY_MS);
    setTimeout(() => void this.#connect(), jittered).unref();
  }
}

/**
 * @param find asks the primary for the path of the hub's socket. The first call starts the hub.
 * @param over when aborted, a lost connection is not reopened.
 */
export function dialSocket(
  find: () => Promise<string>,
  slot: number,
  warn: (message: string) => void,
  over?: AbortSignal,
): Dial {
  return (events) => new SocketLine(find, slot, warn, events, over).send;
}

/** A hub for a process without a primary. It has the same services, but no thread and no socket. */
export const dialInProcess: Dial = (events) => {
  const core = new HubCore();
  const peer: Peer = {
    number: 0,
    slot: 0,
    leaving: false,
    unsentBytes: 0,
    send: (header, body = NO_BODY) => {
      const own = Buffer.from(body); // the memory of a view may change before the frame is read
      // Answers later, because the caller starts to wait only after this call.
      queueMicrotask(() => events.frame(header, own));
    },
  };
  setInterval(() => core.sweep(), SWEEP_MS).unref();
  queueMicrotask(() => events.opened('in-process'));
  return (header, body = NO_BODY) => {
    core.receive(peer, header as WorkerMessage, body);
    return true;
  };
};
