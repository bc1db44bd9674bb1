import type { Socket } from 'node:net';
import { encodeFrame, type Frame, FrameReader, release } from './codec.js';

/** A receiver with more unread bytes than this counts as congested. */
export const CONGESTED_BYTES = 1024 * 1024;

/** Maximum number of bytes that wait for a receiver; `send()` refuses more. A worker stops at half of this. */
const MAX_UNREAD_BYTES = 48 * 1024 * 1024;

/** How long one turn of the event loop reads frames, in ms. Other work runs before the next turn. */
const TURN_MS = 10;

/** Small frames are joined into writes of up to about this size. */
const JOINED_BYTES = 64 * 1024;

export interface FrameSocketEvents {
  /** If this listener throws, the connection is closed. */
  frame(frame: Frame): void;
  /** Called once, when the connection has closed. */
  closed(): void;
  /** Called when the other end has read some bytes. */
  drained?(): void;
}

/** Sends and receives frames over a socket, and limits the bytes that wait for the other end. */
export class FrameSocket {
  readonly #reader: FrameReader;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  /** The next turn, if frames may be left to read. */
  #nextTurn: NodeJS.Immediate | undefined;
  /** Whether this end has closed the connection. */
  #ended = false;
  /** Whether the other end is known. Before that, a frame may only have the size of a `hello`. */
  isKnown: boolean;

  /**
   * @param ofWorker whether this is the worker's end. A worker reads even while the hub does not
   * read from it. If each end waited for the other end to read, both would wait for ever.
   */
  constructor(
    private readonly socket: Socket,
    private readonly events: FrameSocketEvents,
    private readonly ofWorker = false,
  ) {
    this.isKnown = ofWorker;
    this.#reader = new FrameReader(ofWorker); // the hub is done with a frame before the next one
    socket.on('error', () => {}); // 'close' follows
    socket.on('close', () => {
      this.#read(Infinity);
      events.closed();
    });
    socket.on('data', (chunk: Buffer) => {
      this.#reader.push(chunk);
      this.#read();
    });
    socket.on('drain', () => this.#read());
  }

  /** Whether the other end reads too slowly. */
  get congested(): boolean {
    return this.unsentBytes > CONGESTED_BYTES;
  }

  /** The number of bytes that the other end has not read. */
  get unsentBytes(): number {
    return this.socket.writableLength + this.#waitingBytes;
  }

  /**
   * @returns whether the frame was sent. If even a small frame does not fit, the connection closes.
   * @throws Error that names the maximum, if the frame is larger.
   */
  send(header: object, body?: Buffer): boolean {
    if (this.socket.destroyed) return false;
    const frame = encodeFrame(header, body);
    if (this.unsentBytes + frame.length > MAX_UNREAD_BYTES) {
      if (frame.length <= JOINED_BYTES) this.destroy();
      return false;
    }
    if (this.#waiting.length === 0) this.#flushSoon();
    this.#waiting.push(frame);
    this.#waitingBytes += frame.length;
    return true;
  }

  destroy(): void {
    this.#ended = true;
    this.socket.destroy();
  }

  /** The hub reads nothing from a worker that does not read the hub's answers. */
  #read(forMs = TURN_MS): void {
    clearImmediate(this.#nextTurn);
    const until = performance.now() + forMs;
    try {
      while (this.ofWorker || !this.congested) {
        const frame = this.#ended ? undefined : this.#reader.next(this.isKnown);
        if (frame === undefined) {
          if (this.socket.isPaused()) this.socket.resume();
          return;
        }
        this.events.frame(frame);
        if (performance.now() < until) continue;
        this.#nextTurn = setImmediate(() => this.#read());
        break;
      }
      this.socket.pause();
    } catch {
      this.destroy(); // the other end sent something that is not a frame
    }
  }

  /** A worker sends the requests of one turn in one write, so the hub wakes up once. */
  #flushSoon(): void {
    if (this.ofWorker) setImmediate(() => this.#flush());
    else process.nextTick(() => this.#flush());
  }

  #flush(): void {
    const frames = this.#waiting;
    this.#waiting = [];
    this.#waitingBytes = 0;
    if (this.socket.destroyed) return;
    let joined: Buffer[] = [];
    let bytes = 0;
    const write = (): void => {
      if (bytes > 0) this.#write(joined.length === 1 ? joined[0]! : Buffer.concat(joined));
      joined = [];
      bytes = 0;
    };
    for (const frame of frames) {
      if (bytes + frame.length > JOINED_BYTES) write();
      joined.push(frame);
      bytes += frame.length;
    }
    write();
  }

  #write(bytes: Buffer): void {
    this.socket.write(bytes, (error) => {
      release(bytes);
      if (!error) this.events.drained?.();
    });
  }
}
