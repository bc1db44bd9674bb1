import type { Socket } from 'node:net';

/** What of libuv's handle of a connection is used; the same on Node 20 to 26. */
export interface ConnectionHandle {
  readStop(): unknown;
  close(): void;
}

/**
 * Gives an open connection to another process.
 *
 * @param server the address that its server listens on.
 * @returns resolves once the other process has it and `handle` may be closed;
 *   `undefined` where nobody could take it.
 */
export type HandOver = (server: string, handle: ConnectionHandle) => Promise<void> | undefined;

/** Nest's reader of a socket, as far as it tells that it has read half a message. */
interface JsonReader {
  readonly buffer: string;
  readonly contentLength: number | null;
}

/** A connection of a TCP microservice. */
export class RpcConnection {
  /** Messages that are worked on. */
  #running = 0;
  #reader: unknown;
  #bytesRead: number;
  /**
   * Monotonic ms; since then nothing has come. Begins when it is first looked at: what has waited in
   * the kernel since before it was accepted is read before the second look, however late that is.
   */
  #quietSince: number | undefined;
  /** Monotonic ms. */
  endedAt: number | undefined;
  #leaving = false;

  /** @param idle is called when the last message that was worked on has had its answer. */
  constructor(
    readonly socket: Socket,
    private readonly idle: (connection: RpcConnection) => void,
  ) {
    this.#bytesRead = socket.bytesRead;
  }

  /** @param reader what Nest reads the socket with. */
  readBy(reader: unknown): void {
    this.#reader = reader;
  }

  /**
   * A message is worked on.
   *
   * @returns to be called when that is over.
   */
  begin(): () => void {
    this.#running += 1;
    return () => {
      this.#running -= 1;
      // Nest writes the answer before the event loop comes to that.
      if (this.#running === 0) setImmediate(() => this.idle(this));
    };
  }

  /** Ms for which nothing has come, or been worked on; looked at again and again. */
  quietMs(now: number): number {
    if (this.#bytesRead !== this.socket.bytesRead || this.#running > 0) {
      this.#bytesRead = this.socket.bytesRead;
      this.#quietSince = now;
    }
    this.#quietSince ??= now;
    return now - this.#quietSince;
  }

  /** Owes its client nothing. */
  get isIdle(): boolean {
    if (this.#leaving || this.endedAt !== undefined) return false;
    return this.#running === 0 && this.socket.writableLength === 0;
  }

  /** Whether a message is half read; `undefined` where a reader of the app's own does not tell. */
  get isHalfRead(): boolean | undefined {
    const { buffer, contentLength } = (this.#reader ?? {}) as Partial<JsonReader>;
    if (buffer === undefined || contentLength === undefined) return undefined;
    return buffer !== '' || contentLength !== null;
  }

  /** Reads no more: what comes waits in the kernel, for whoever takes the connection over. */
  hold(): void {
    this.#handle?.readStop();
  }

  /** Gives the connection away, without a word to its client. @returns whether somebody may have it. */
  leave(server: string, handOver: HandOver): boolean {
    const handle = this.#handle;
    if (handle === undefined) return false;
    const given = handOver(server, handle);
    if (given === undefined) return false;
    this.#leaving = true;
    handle.readStop();
    // The other process has a descriptor of its own: this closes ours alone.
    void given.then(() => this.socket.destroy());
    return true;
  }

  end(now: number): void {
    this.endedAt = now;
    this.socket.end();
  }

  get #handle(): ConnectionHandle | undefined {
    const handle: unknown = Reflect.get(this.socket, '_handle');
    const known = handle as Partial<ConnectionHandle> | null | undefined;
    return typeof known?.readStop === 'function' ? (known as ConnectionHandle) : undefined;
  }
}
