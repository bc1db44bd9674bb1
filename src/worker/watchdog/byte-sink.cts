// Sends a worker's recording to its asker. It has a unix socket of its own: it may be hundreds of MB,
// and the end of the recording must differ from the end of the process.
import net = require('node:net');

/** Frames: their length in 4 bytes, then that many bytes. An empty one is the end. */
const HEADER_BYTES = 4;

/** Set in the length of a frame that holds an error, as text. */
const ERROR_BIT = 2 ** 31;

const MAX_ERROR_LENGTH = 1_000;

/** The socket is there before it is asked for. */
const CONNECT_TIMEOUT_MS = 2_000;

class ByteSink {
  private constructor(private readonly socket: net.Socket) {}

  /** @param gone Nobody wants it any more. */
  static open(path: string, gone: () => void): Promise<ByteSink> {
    return new Promise((resolve, reject) => {
      const socket = net.connect(path, () => {
        socket.setTimeout(0);
        socket.removeListener('error', reject);
        socket.on('error', gone);
        socket.on('close', gone);
        resolve(new ByteSink(socket));
      });
      socket.setTimeout(CONNECT_TIMEOUT_MS, () => socket.destroy(new Error('nobody answers')));
      socket.on('error', reject);
      socket.resume(); // the asker sends nothing, but its end has to be seen
    });
  }

  /** Resolves once there is room for more. */
  write(bytes: Buffer): Promise<void> | undefined {
    if (bytes.length === 0) return undefined;
    this.socket.write(header(bytes.length));
    if (this.socket.write(bytes)) return undefined;
    return new Promise((resolve) => {
      this.socket.once('drain', resolve);
      this.socket.once('close', resolve);
    });
  }

  /** All of it has been written. Resolves once it has been sent. */
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

export = { ByteSink };
