import { createConnection } from 'node:net';
import type { HubAddress } from '../../contract/snapshot/index.js';
import { type Frame, tooLarge } from '../wire/codec.js';
import { FrameSocket } from '../wire/frame-socket.js';
import { type FromHub, HUB_VERSION, NO_BODY, type ToHub } from '../wire/protocol.js';
import type { Dial, Line, LineEvents } from './line.js';

const FIRST_RETRY_MS = 10;
const MAX_RETRY_MS = 1_000;

/** A hub that does not answer by then hangs. */
const HELLO_MS = 2_000;

/** Of what the hub has not read. Beyond it nothing more is asked: it hangs, or is far behind. */
const MAX_UNSENT_BYTES = 24 * 1024 * 1024;

/** What gives something back, in a few bytes. If it were lost, the hub would keep that for ever. */
const GIVES_BACK: ReadonlySet<ToHub['op']> = new Set(['unlock', 'cancel']);

/** The one connection of a worker to the hub of its primary. */
class SocketLine implements Line {
  #address: HubAddress | undefined;
  #frames: FrameSocket | undefined;
  #open = false;
  /** Something could not be sent for want of room. */
  #full = false;
  #retryMs = FIRST_RETRY_MS;
  #warned: string | undefined;

  constructor(
    private readonly find: () => Promise<HubAddress>,
    private readonly slot: number,
    private readonly warn: (message: string) => void,
    private readonly events: LineEvents,
    private readonly over: AbortSignal | undefined,
  ) {
    void this.#connect();
  }

  send(header: ToHub, body?: Buffer): boolean {
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
    // The app's servers keep the process up, this does not.
    socket.unref();
    socket.once('error', () => (this.#address = undefined)); // it may be elsewhere
    const frames = new FrameSocket(
      socket,
      {
        frame: (frame) => this.#onFrame(frame),
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

  #onFrame({ header, body, skippedBytes }: Frame): void {
    if (skippedBytes !== undefined) return this.#skip(header, skippedBytes);
    const said = header as FromHub; // it is the primary's own thread
    if (this.#open) return this.events.frame(said, body);
    if (said.t === 'refused') {
      this.#cannot(`the hub does not serve this worker: ${said.why}`, said.why);
      return this.#frames!.destroy();
    }
    if (said.t !== 'welcome') return;
    this.#open = true;
    this.#warned = undefined;
    this.#retryMs = FIRST_RETRY_MS;
    this.events.opened(said.instance);
  }

  /** An answer that is too large is no answer; the connection goes on. */
  #skip(header: unknown, bytes: number): void {
    const { id } = (header ?? {}) as { id?: unknown };
    if (typeof id !== 'number') return;
    this.events.frame(
      { t: 'refused', id, why: `the answer is too large: ${tooLarge(bytes)}` },
      NO_BODY,
    );
  }

  /** It tries each second: a reason that goes on is no news. */
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
 * @param find asks the primary, which starts the hub for the first who asks.
 * @param over ends it: it is not opened again. Default: with the process.
 */
export function dialSocket(
  find: () => Promise<HubAddress>,
  slot: number,
  warn: (message: string) => void,
  over?: AbortSignal,
): Dial {
  return (events) => new SocketLine(find, slot, warn, events, over);
}
