import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { MAX_FRAME_BYTES, MAX_HELLO_BYTES, NO_BODY, tooLarge } from './limits.js';

/** Two little-endian numbers: the length of the rest, and the length of the header in it. */
const PREFIX_BYTES = 8;

/** A header up to this size is read even if its frame is skipped, to answer the sender. */
const MAX_SKIPPED_HEADER_BYTES = 256 * 1024;

/**
 * A message on the wire: a header in JSON and a body of bytes. For an object of ten fields, JSON
 * takes 1 µs and `v8.serialize` 3 µs. JSON needs no package.
 */
export interface Frame {
  readonly header: unknown;
  readonly body: Buffer;
  /** The size in bytes of a frame that is larger than the maximum, and whose body is skipped. */
  readonly skippedBytes?: number;
}

/** @throws Error that names the maximum, if the frame is larger. */
export function encodeFrame(header: object, body: Buffer = NO_BODY): Buffer {
  const json = JSON.stringify(header);
  const headerBytes = Buffer.byteLength(json);
  const length = headerBytes + body.length + 4;
  if (length > MAX_FRAME_BYTES) throw new Error(tooLarge(length));
  const frame = Buffer.allocUnsafe(PREFIX_BYTES + headerBytes + body.length);
  frame.writeUInt32LE(length, 0);
  frame.writeUInt32LE(headerBytes, 4);
  frame.write(json, PREFIX_BYTES, 'utf8');
  body.copy(frame, PREFIX_BYTES + headerBytes);
  return frame;
}

/** Smaller buffers are left to V8's garbage collector, because releasing them takes more time. */
const RELEASED_BYTES = 16 * 1024;

/** A closed port, created at its first use. Only Node 20 needs it. */
let nowhere: MessagePort | undefined;

/**
 * Frees memory that nobody reads any more. Otherwise much memory piles up until V8 collects it,
 * because V8 sees the chunks of sockets as small objects.
 */
export function release(bytes: Buffer): void {
  // Leaves a small buffer alone, because it shares its memory with other buffers.
  if (bytes.length < RELEASED_BYTES || bytes.length !== bytes.buffer.byteLength) return;
  const memory = bytes.buffer as ArrayBuffer & { transfer?: (bytes: number) => unknown };
  if (memory.transfer !== undefined) memory.transfer(0);
  else (nowhere ??= closedPort()).postMessage(undefined, [memory]); // Node 20
}

/** A port that frees the memory that is transferred to it. */
function closedPort(): MessagePort {
  const { port1, port2 } = new MessageChannel();
  port1.close();
  port2.close();
  return port1;
}

interface Chunk {
  readonly whole: Buffer;
  /** The part that was not read yet. */
  rest: Buffer;
}

/** Cuts chunks into frames. Returns one frame at a time, so that the caller may pause. */
export class FrameReader {
  readonly #chunks: Chunk[] = [];
  #bytes = 0;
  /** The number of bytes still to skip of a frame that is too large. */
  #skipping = 0;
  /** The memory of the frame that was returned last. */
  #read: Buffer[] = [];

  /** @param kept if false, the memory of a frame is freed by the next call of {@link next}. */
  constructor(private readonly kept = true) {}

  push(chunk: Buffer): void {
    this.#chunks.push({ whole: chunk, rest: chunk });
    this.#bytes += chunk.length;
  }

  /**
   * @param isKnown whether the sender is known, so that its frames may be larger than a `hello`.
   * @returns the next frame, whose body is a view of the chunks; `undefined` until all its bytes
   * are there.
   * @throws Error if the bytes cannot be a frame. Nothing after these bytes can be read.
   */
  next(isKnown = true): Frame | undefined {
    this.#releaseRead();
    this.#skip();
    if (this.#bytes < PREFIX_BYTES) return undefined;
    const prefix = this.#first(PREFIX_BYTES);
    const length = prefix.readUInt32LE(0);
    const headerBytes = prefix.readUInt32LE(4);
    if (length < 4 || headerBytes > length - 4 || (length > MAX_HELLO_BYTES && !isKnown)) {
      throw new Error(`a header of ${headerBytes} bytes in a frame of ${length}`);
    }
    const isTooLarge = length > MAX_FRAME_BYTES;
    const isHeaderRead = !isTooLarge || headerBytes <= MAX_SKIPPED_HEADER_BYTES;
    const bodyAt = PREFIX_BYTES + (isHeaderRead ? headerBytes : 0);
    const end = isTooLarge ? bodyAt : 4 + length;
    if (this.#bytes < end) return undefined;
    const frame = this.#first(end);
    this.#drop(end);
    this.#read.push(frame);
    const header: unknown = isHeaderRead
      ? JSON.parse(frame.toString('utf8', PREFIX_BYTES, bodyAt))
      : undefined;
    const body = frame.subarray(bodyAt, end);
    if (!isTooLarge) return { header, body };
    this.#skipping = 4 + length - end;
    return { header, body, skippedBytes: length };
  }

  #skip(): void {
    const bytes = Math.min(this.#skipping, this.#bytes);
    this.#skipping -= bytes;
    this.#drop(bytes);
  }

  /** The first bytes, in one buffer. */
  #first(bytes: number): Buffer {
    const { rest } = this.#chunks[0]!;
    if (rest.length >= bytes) return rest.subarray(0, bytes);
    return Buffer.concat(
      this.#chunks.map((chunk) => chunk.rest),
      bytes,
    );
  }

  #drop(bytes: number): void {
    this.#bytes -= bytes;
    for (let left = bytes; left > 0;) {
      const chunk = this.#chunks[0]!;
      if (chunk.rest.length > left) {
        chunk.rest = chunk.rest.subarray(left);
        return;
      }
      left -= chunk.rest.length;
      this.#chunks.shift();
      this.#read.push(chunk.whole);
    }
  }

  #releaseRead(): void {
    if (this.#read.length === 0) return;
    if (!this.kept) this.#read.forEach(release);
    this.#read = [];
  }
}
