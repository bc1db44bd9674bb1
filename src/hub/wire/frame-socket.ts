import type { Socket } from 'node:net';
import { encodeFrame, type Frame, FrameReader, release } from './codec.js';

/** Beyond this a receiver does not keep up. */
export const CONGESTED_BYTES = 1024 * 1024;

/** Nothing is kept for it beyond this. A worker stops asking at half of it, and one frame may follow. */
const MAX_UNREAD_BYTES = 48 * 1024 * 1024;

/** Small frames that become due together are one write. */
const JOINED_BYTES = 64 * 1024;

export interface FrameSocketEvents {
  /** An error that it throws ends the connection. */
  frame(frame: Frame): void;
  /** Is called once. */
  closed(): void;
  /** The other end has read on. */
  drained?(): void;
}

/** A socket that frames go over. What the other end does not read is bounded in bytes. */
export class FrameSocket {
  readonly #reader: FrameReader;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;

  /**
   * @param ofWorker this end is the worker's. It reads on also while it is congested, since one of two
   * ends must: if neither reads before the other has, both stand still for ever.
   */
  constructor(
    private readonly socket: Socket,
    private readonly events: FrameSocketEvents,
    private readonly ofWorker = false,
  ) {
    this.#reader = new FrameReader(ofWorker); // the hub is done with a frame before it reads the next one
    socket.on('error', () => {}); // 'close' follows
    socket.on('close', () => events.closed());
    socket.on('data', (chunk: Buffer) => {
      this.#reader.push(chunk);
      this.#read();
    });
    socket.on('drain', () => this.#read());
  }

  /** It does not read what it is sent. */
  get congested(): boolean {
    return this.unsentBytes > CONGESTED_BYTES;
  }

  /** Bytes that the other end has not read. */
  get unsentBytes(): number {
    return this.socket.writableLength + this.#waitingBytes;
  }

  /**
   * @returns whether there was room for it. If there is none for a small frame either, the connection ends.
   * @throws Error with the limit, if it is larger than a frame may be.
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
    this.socket.destroy();
  }

  /** The other end sends and does not read: unless this one reads on, it is not read any further. */
  #read(): void {
    try {
      while (this.ofWorker || !this.congested) {
        const frame = this.socket.destroyed ? undefined : this.#reader.next();
        if (frame === undefined) {
          if (this.socket.isPaused()) this.socket.resume();
          return;
        }
        this.events.frame(frame);
      }
      this.socket.pause();
    } catch {
      this.destroy(); // what it sent is no frame
    }
  }

  /** Requests whose clients a worker reads in one turn go as one write, and wake the hub once. */
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
