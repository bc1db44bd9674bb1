import type { Server, Socket } from 'node:net';
import tls from 'node:tls';

/**
 * A client that has sent nothing for so long has most likely nothing to send. The protocol has no
 * word for a last answer: a request that is sent while we close fails at its client.
 */
const QUIET_MS = 100;

/** A client that has not closed its side by then never will. */
const HALF_OPEN_MS = 1_000;

/** Nest's reader of a socket, as far as it tells that it has read half a message. */
interface JsonReader {
  readonly buffer: string;
  readonly contentLength: number | null;
}

/** The connections of a TCP microservice: a client keeps one for good, and sends over it at any time. */
export class RpcSockets {
  readonly #connections = new Map<Socket, RpcConnection>();

  /** @param open those that were there before. */
  constructor(
    readonly server: Server,
    open: Iterable<Socket>,
  ) {
    const accepted = server instanceof tls.Server ? 'secureConnection' : 'connection';
    server.on(accepted, (socket: Socket) => void this.of(socket));
    for (const socket of open) this.of(socket);
  }

  get open(): number {
    return this.#connections.size;
  }

  of(socket: Socket): RpcConnection {
    let connection = this.#connections.get(socket);
    if (connection === undefined) {
      connection = new RpcConnection(socket);
      if (socket.destroyed) return connection;
      this.#connections.set(socket, connection);
      socket.once('close', () => this.#connections.delete(socket));
    }
    return connection;
  }

  /**
   * Ends connections that owe no answer.
   *
   * @param patient only those that have been quiet; else the others are read no more, so that they
   *   come to owe none.
   */
  closeIdle(patient: boolean): void {
    const now = performance.now();
    for (const connection of this.#connections.values()) connection.closeIfIdle(patient, now);
  }
}

class RpcConnection {
  /** Messages that are worked on. */
  #running = 0;
  #reader: unknown;
  #bytesRead: number;
  /**
   * Monotonic ms; nothing has come since. It begins at the first look: what the kernel held before
   * this process accepted the connection is read by the second one, however late that is.
   */
  #quietSince: number | undefined;
  /** Monotonic ms. */
  #endedAt: number | undefined;

  constructor(private readonly socket: Socket) {
    this.#bytesRead = socket.bytesRead;
  }

  /** Its client cannot be answered any more. */
  get ended(): boolean {
    return this.#endedAt !== undefined;
  }

  /** @param reader what Nest reads the socket with. */
  readBy(reader: unknown): void {
    this.#reader = reader;
  }

  /** @returns to be called when the message is worked on no more. */
  begin(): () => void {
    this.#running += 1;
    return () => void (this.#running -= 1);
  }

  closeIfIdle(patient: boolean, now: number): void {
    if (this.#endedAt !== undefined) {
      if (now - this.#endedAt > HALF_OPEN_MS) this.socket.destroy();
      return;
    }
    const quietMs = this.#quietMs(now);
    if (this.#isHalfRead || (patient && quietMs < QUIET_MS)) return;
    if (this.#running > 0 || this.socket.writableLength > 0) {
      if (!patient) this.socket.pause();
      return;
    }
    this.#endedAt = now;
    this.socket.end();
    // Closed with unread data it would be reset, and the client might lose its last answer.
    this.socket.resume();
  }

  #quietMs(now: number): number {
    if (this.#bytesRead !== this.socket.bytesRead || this.#running > 0) {
      this.#bytesRead = this.socket.bytesRead;
      this.#quietSince = now;
    }
    this.#quietSince ??= now;
    return now - this.#quietSince;
  }

  /** `false` for a reader of the app's own, which does not tell. */
  get #isHalfRead(): boolean {
    const { buffer = '', contentLength = null } = (this.#reader ?? {}) as Partial<JsonReader>;
    return buffer !== '' || contentLength !== null;
  }
}
