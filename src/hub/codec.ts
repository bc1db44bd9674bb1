import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { MAX_FRAME_BYTES, NO_BODY } from './protocol.js';

/** Length of what follows, and of the header in it, little-endian. */
const PREFIX_BYTES = 8;

/**
 * A frame is a header in JSON and a body of bytes. JSON, since it is at least as fast as
 * `v8.serialize` (1 µs against 3) for an object of ten fields, and nothing has to be installed for it.
 */
export interface Frame {
  readonly header: unknown;
  readonly body: Buffer;
}

export function encodeFrame(header: object, body: Buffer = NO_BODY): Buffer {
  const json = JSON.stringify(header);
  const headerBytes = Buffer.byteLength(json);
  const frame = Buffer.allocUnsafe(PREFIX_BYTES + headerBytes + body.length);
  frame.writeUInt32LE(headerBytes + body.length + 4, 0);
  frame.writeUInt32LE(headerBytes, 4);
  frame.write(json, PREFIX_BYTES, 'utf8');
  body.copy(frame, PREFIX_BYTES + headerBytes);
  return frame;
}

/** Less is left to V8: to give it back would take longer. */
const RELEASED_BYTES = 16 * 1024;

/** Made when it is needed: on Node 20, for large frames. */
let nowhere: MessagePort | undefined;

/**
 * Gives memory back at once that nobody reads any more. V8 would let much of it pile up before it looks:
 * it takes chunks of sockets for small objects.
 */
export function release(bytes: Buffer): void {
  // Of the memory that it shares with others, a small buffer has only a part.
  if (bytes.length < RELEASED_BYTES || bytes.length !== bytes.buffer.byteLength) return;
  const memory = bytes.buffer as ArrayBuffer & { transfer?: (bytes: number) => unknown };
  if (memory.transfer !== undefined) memory.transfer(0);
  else (nowhere ??= closedPort()).postMessage(undefined, [memory]); // Node 20
}

/** What is sent to it, and moved there, is freed. */
function closedPort(): MessagePort {
  const { port1, port2 } = new MessageChannel();
  port1.close();
  port2.close();
  return port1;
}

interface Chunk {
  readonly whole: Buffer;
  /** What was not read yet. */
  rest: Buffer;
}

/** Makes frames of chunks, one at a time: who is not ready for the next one leaves it. */
export class FrameReader {
  readonly #chunks: Chunk[] = [];
  #bytes = 0;
  /** What the last frame lies in. */
  #read: Buffer[] = [];

  /** @param kept bodies are kept by those who read them. Otherwise they are gone with the next frame. */
  constructor(private readonly kept = true) {}

  push(chunk: Buffer): void {
    this.#chunks.push({ whole: chunk, rest: chunk });
    this.#bytes += chunk.length;
  }

  /**
   * The body is a view of what was read: who keeps it copies it.
   *
   * @throws Error for what cannot be a frame. Nothing after it can be read.
   */
  next(): Frame | undefined {
    this.#releaseRead();
    if (this.#bytes < PREFIX_BYTES) return undefined;
    const length = this.#first(PREFIX_BYTES).readUInt32LE(0);
    if (length < 4 || length > MAX_FRAME_BYTES) throw new Error(`a frame of ${length} bytes`);
    if (this.#bytes < 4 + length) return undefined;
    const frame = this.#first(4 + length);
    this.#drop(4 + length);
    this.#read.push(frame);
    const headerBytes = frame.readUInt32LE(4);
    if (headerBytes > length - 4) throw new Error(`a header of ${headerBytes} bytes`);
    const bodyAt = PREFIX_BYTES + headerBytes;
    const header: unknown = JSON.parse(frame.toString('utf8', PREFIX_BYTES, bodyAt));
    return { header, body: frame.subarray(bodyAt, 4 + length) };
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
