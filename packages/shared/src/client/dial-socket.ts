import { createConnection } from 'node:net';
import type { ThreadAddress } from 'nestjs-cluster/extension';
import { type Frame, FrameSocket } from '../wire/frame-socket.js';
import { checkTexts } from '../wire/check-texts.js';
import { HUB_VERSION } from '../wire/limits.js';
import type { FromHub, ToHub } from '../wire/protocol.js';
import type { Dial, Line, LineEvents } from './hub-client.interface.js';

const FIRST_RETRY_MS = 10;
const MAX_RETRY_MS = 1_000;

/** A hub that does not answer `hello` within this time counts as hung. */
const HELLO_MS = 2_000;

/** Maximum number of bytes that the hub has not read. Beyond it, the hub hangs or lags, and gets no more requests. */
const MAX_UNSENT_BYTES = 24 * 1024 * 1024;

/** Messages that are sent even beyond that maximum. Otherwise the hub would keep a lock or a wait for ever. */
const GIVES_BACK: ReadonlySet<ToHub['op']> = new Set(['unlock', 'cancel']);

/** The only connection of a worker to the hub. */
class SocketLine implements Line {
  #address: ThreadAddress | undefined;
  #frames: FrameSocket | undefined;
  #open = false;
  /** Whether a message could not be sent, because the hub has too many unread bytes. */
  #full = false;
  #retryMs = FIRST_RETRY_MS;
  #warned: string | undefined;

  constructor(
    private readonly find: () => Promise<ThreadAddress>,
    private readonly slot: number,
    private readonly warn: (message: string) => void,
    private readonly events: LineEvents,
    private readonly over: AbortSignal | undefined,
  ) {
    void this.#connect();
  }

  send(header: ToHub, body?: Buffer): boolean {
    checkTexts(header);
    if (!this.#open) return false;
    const frames = this.#frames!;
    if (frames.unsentBytes > MAX_UNSENT_BYTES && !GIVES_BACK.has(header.op)) {
      this.#full = true;
      return false;
    }
    return frames.send(header, body);
  }

  async #connect(): Promise<void> {
    try {
      this.#address ??= await this.find();
    } catch (error) {
      const why = (error as Error).message;
      this.#cannot(`there is no hub: ${why}; it is tried again`, why);
      return this.#again();
    }
    const { path, token } = this.#address;
    const socket = createConnection({ path });
    socket.unref(); // only the app's servers keep the process alive
    socket.once('error', () => (this.#address = undefined)); // the hub may have moved
    const frames = new FrameSocket(
      socket,
      {
        frame: (frame) => this.#onFrame(frame as Frame<FromHub>), // the hub is a thread of the primary
        closed: () => {
          clearTimeout(timer);
          const wasOpen = this.#open;
          this.#open = this.#full = false;
          if (wasOpen) this.events.closed();
          this.#again();
        },
        drained: () => {
          if (!this.#full || frames.unsentBytes > MAX_UNSENT_BYTES) return;
          this.#full = false;
          this.events.drained();
        },
      },
      true,
    );
    const timer = setTimeout(() => this.#open || socket.destroy(), HELLO_MS).unref();
    this.#frames = frames;
    frames.send({ op: 'hello', id: 0, v: HUB_VERSION, token, slot: this.slot } satisfies ToHub);
  }

  #onFrame({ header: message, body }: Frame<FromHub>): void {
    if (this.#open) return this.events.frame(message, body);
    if (message.t === 'refused') {
      this.#cannot(`the hub does not serve this worker: ${message.why}`, message.why);
      return this.#frames!.destroy();
    }
    if (message.t !== 'welcome') return;
    this.#open = true;
    this.#warned = undefined;
    this.#retryMs = FIRST_RETRY_MS;
    this.events.opened(message.instance);
  }

  /** Retries each second. Warns, unless the last warning was the same. */
  #cannot(message: string, why: string): void {
    if (message !== this.#warned) this.warn(message);
    this.#warned = message;
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
 * @param find asks the primary for the address. The first call makes the primary start the hub.
 * @param over when aborted, a lost connection is not opened again.
 */
export function dialSocket(
  find: () => Promise<ThreadAddress>,
  slot: number,
  warn: (message: string) => void,
  over?: AbortSignal,
): Dial {
  return (events) => new SocketLine(find, slot, warn, events, over);
}
