import type { Socket } from 'node:net';

/** A frame has its length in 4 bytes and then its bytes. An empty frame ends the recording. */
const HEADER_BYTES = 4;

/** This bit is set in the length of a frame that holds an error message. */
const ERROR_BIT = 2 ** 31;

const MAX_ERROR_LENGTH = 1_000;

/** The maximum time to connect. Short, because the socket listens before the recording is requested. */
const CONNECT_TIMEOUT_MS = 2_000;

/**
 * Sends a worker's recording to the process that asked for it, over a unix socket. A recording can
 * have hundreds of MB, and the reader must be able to tell a complete one from a worker that ended.
 */
export class ByteSink {
  private constructor(private readonly socket: Socket) {}

  /** @param gone is called when the reader has closed the socket. */
  static open(path: string, gone: () => void): Promise<ByteSink> {
    return new Promise((resolve, reject) => {
      const { connect } = process.getBuiltinModule('node:net'); // only few threads need it
      const socket = connect(path, () => {
        socket.setTimeout(0);
        socket.removeListener('error', reject);
        socket.on('error', gone);
        socket.on('close', gone);
        resolve(new ByteSink(socket));
      });
      socket.setTimeout(CONNECT_TIMEOUT_MS, () => socket.destroy(new Error('nobody answers')));
      socket.on('error', reject);
      socket.resume(); // the reader sends nothing, but its close must be noticed
    });
  }

  /** Resolves when more can be written. `undefined` means that more can be written at once. */
  write(bytes: Buffer): Promise<void> | undefined {
    if (bytes.length === 0) return undefined;
    this.socket.write(header(bytes.length));
    if (this.socket.write(bytes)) return undefined;
    return new Promise((resolve) => {
      this.socket.once('drain', resolve);
      this.socket.once('close', resolve);
    });
  }

  /** Ends the recording. Resolves when the whole recording was sent. */
  end(): Promise<void> {
    return new Promise((resolve) => this.socket.end(header(0), resolve));
  }

  fail(error: unknown): Promise<void> {
    const text = error instanceof Error ? error.message : String(error);
    const bytes = Buffer.from(text.slice(0, MAX_ERROR_LENGTH));
    this.socket.write(header(bytes.length + ERROR_BIT));
    return new Promise((resolve) => this.socket.end(bytes, resolve));
  }
}

function header(length: number): Buffer {
  const bytes = Buffer.allocUnsafe(HEADER_BYTES);
  bytes.writeUInt32BE(length);
  return bytes;
}
