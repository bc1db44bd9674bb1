import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { MAX_FRAME_BYTES, NO_BODY, tooLarge } from './limits.js';

/** Two little-endian numbers: the length of the rest, and the length of the header in it. */
const PREFIX_BYTES = 8;

/** A header up to this size is read even if its frame is skipped, so that its sender gets an answer. */
const MAX_SKIPPED_HEADER_BYTES = 256 * 1024;

/**
 * A header in JSON and a body of bytes. JSON is at least as fast as `v8.serialize` for an object of ten
 * fields (1 µs against 3), and needs no package.
 */
export interface Frame {
  readonly header: unknown;
  readonly body: Buffer;
  /** The size of a frame that is too large. Its body is skipped, and so is a very long header. */
  readonly skippedBytes?: number;
}

/** @throws Error with the limit, if the frame is too large. */
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

/** Less is left to V8, which takes less time. */
const RELEASED_BYTES = 16 * 1024;

/** Made when it is needed: on Node 20, for large frames. */
let nowhere: MessagePort | undefined;

/**
 * Frees memory that nobody reads any more. V8 would let much of it pile up before it collects: it
 * takes the chunks of sockets for small objects.
 */
export function release(bytes: Buffer): void {
  // A small buffer shares its memory with others.
  if (bytes.length < RELEASED_BYTES || bytes.length !== bytes.buffer.byteLength) return;
  const memory = bytes.buffer as ArrayBuffer & { transfer?: (bytes: number) => unknown };
  if (memory.transfer !== undefined) memory.transfer(0);
  else (nowhere ??= closedPort()).postMessage(undefined, [memory]); // Node 20
}

/** Memory that is moved to it is freed. */
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

/** Makes frames of chunks, one at a time: a reader may leave the next one for later. */
export class FrameReader {
  readonly #chunks: Chunk[] = [];
  #bytes = 0;
  /** The bytes left of a frame that is too large. */
  #skipping = 0;
  /** The memory of the last frame. */
  #read: Buffer[] = [];

  /** @param kept if false, the memory of a frame is freed with the next call of {@link next}. */
  constructor(private readonly kept = true) {}

  push(chunk: Buffer): void {
    this.#chunks.push({ whole: chunk, rest: chunk });
    this.#bytes += chunk.length;
  }

  /**
   * The body is a view of the chunks.
   *
   * @throws Error if the bytes cannot be a frame. Nothing after them can be read.
   */
  next(): Frame | undefined {
    this.#releaseRead();
    this.#skip();
    if (this.#bytes < PREFIX_BYTES) return undefined;
    const prefix = this.#first(PREFIX_BYTES);
    const length = prefix.readUInt32LE(0);
    const headerBytes = prefix.readUInt32LE(4);
    if (length < 4 || headerBytes > length - 4) {
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

  /** The first bytes in one piece. */
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
