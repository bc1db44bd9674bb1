import type { Server, Socket } from 'node:net';
import tls from 'node:tls';

/**
 * A client that was silent for this time will most likely send nothing while we close the
 * connection. A request sent at that time would fail, and the protocol cannot announce the close.
 */
const QUIET_MS = 100;

/** The connections of a TCP microservice. Clients keep them open and may send at any time. */
export class TcpConnections {
  readonly #connections = new Map<Socket, TcpConnection>();

  constructor(readonly server: Server) {
    const accepted = server instanceof tls.Server ? 'secureConnection' : 'connection';
    server.on(accepted, (socket: Socket) => void this.of(socket));
  }

  get open(): number {
    return this.#connections.size;
  }

  of(socket: Socket): TcpConnection {
    let connection = this.#connections.get(socket);
    if (connection === undefined) {
      connection = new TcpConnection(socket);
      if (socket.destroyed) return connection;
      this.#connections.set(socket, connection);
      socket.once('close', () => this.#connections.delete(socket));
    }
    return connection;
  }

  /**
   * Ends the connections without unanswered requests.
   *
   * @param patient whether to end only silent connections. If not, also stops reading from the busy
   *   connections, so that no further requests arrive on them.
   */
  closeIdle(patient: boolean): void {
    const now = performance.now();
    for (const connection of this.#connections.values()) connection.closeIfIdle(patient, now);
  }
}

class TcpConnection {
  /** The number of handlers that have not given their last answer. */
  running = 0;
  #bytesRead: number;
  /**
   * When the connection last received something, in monotonic ms. Starts only at the first check. By
   * the second check, data that the kernel held before the connection was accepted has been read.
   */
  #quietSince: number | undefined;

  constructor(private readonly socket: Socket) {
    this.#bytesRead = socket.bytesRead;
  }

  closeIfIdle(patient: boolean, now: number): void {
    const { socket } = this;
    if (socket.writableEnded) return;
    if (this.running > 0 || this.#bytesRead !== socket.bytesRead) this.#quietSince = now;
    this.#bytesRead = socket.bytesRead;
    if (patient && now - (this.#quietSince ??= now) < QUIET_MS) return;
    if (this.running > 0 || socket.writableLength > 0) {
      if (!patient) socket.pause();
      return;
    }
    // No further request begins, because its answer could not be sent.
    socket.removeAllListeners('data');
    socket.end();
    // Reads on, because a close with unread data resets the connection and can lose the last answer.
    socket.resume();
  }
}
