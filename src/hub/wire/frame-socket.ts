import type { Socket } from 'node:net';
import { encodeFrame, type Frame, FrameReader, release } from './codec.js';

/** A receiver with more unread bytes does not keep up. */
export const CONGESTED_BYTES = 1024 * 1024;

/** More is not kept for a receiver. A worker stops asking at half of it, and one frame may follow. */
const MAX_UNREAD_BYTES = 48 * 1024 * 1024;

/** A turn of the event loop reads frames for this long: a handler of each may take its time. */
const TURN_MS = 10;

/** Frames that are sent together go in writes of about this size. */
const JOINED_BYTES = 64 * 1024;

export interface FrameSocketEvents {
  /** An error that it throws ends the connection. */
  frame(frame: Frame): void;
  /** Called once. */
  closed(): void;
  /** The other end has read some bytes. */
  drained?(): void;
}

/** Sends and receives frames over a socket. The bytes that the other end has not read are bounded. */
export class FrameSocket {
  readonly #reader: FrameReader;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  /** The next turn, if there may be unread frames. */
  #nextTurn: NodeJS.Immediate | undefined;
  /** This end has ended the connection. */
  #ended = false;

  /**
   * @param ofWorker whether this end is the worker's. It also reads while it is congested: if both ends
   * waited for the other to read first, both would stand still for ever.
   */
  constructor(
    private readonly socket: Socket,
    private readonly events: FrameSocketEvents,
    private readonly ofWorker = false,
  ) {
    this.#reader = new FrameReader(ofWorker); // the hub needs no frame any more when it reads the next one
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

  /** The other end does not keep up. */
  get congested(): boolean {
    return this.unsentBytes > CONGESTED_BYTES;
  }

  /** Bytes that the other end has not read. */
  get unsentBytes(): number {
    return this.socket.writableLength + this.#waitingBytes;
  }

  /**
   * @returns whether there was room for it. If even a small frame finds none, the connection ends.
   * @throws Error with the limit, if the frame is too large.
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

  /** The hub stops reading from a worker that does not read itself. */
  #read(forMs = TURN_MS): void {
    clearImmediate(this.#nextTurn);
    const until = performance.now() + forMs;
    try {
      while (this.ofWorker || !this.congested) {
        const frame = this.#ended ? undefined : this.#reader.next();
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
      this.destroy(); // it sent something else than frames
    }
  }

  /** The requests of one turn of a worker's event loop go as one write, which wakes the hub once. */
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
