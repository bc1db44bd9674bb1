import { type AddressInfo, type Server, Socket } from 'node:net';
import tls from 'node:tls';
import { type ConnectionHandle, type HandOver, RpcConnection } from './rpc-connection.js';

/**
 * A client that sends nothing for so long has most likely nothing to send. The
 * protocol has no word for goodbye: what it sends while we close is lost.
 */
const QUIET_MS = 100;

/** A client that has not closed its side by then never will. */
const HALF_OPEN_MS = 1_000;

/** The connections of a TCP microservice: clients keep one for good, and send over it whenever they like. */
export class RpcSockets {
  readonly #connections = new Map<Socket, RpcConnection>();
  /** What it listens on, also once it does no more. */
  #address = '';
  #handOver: HandOver | undefined;

  /** @param open those that were there before. */
  constructor(
    readonly server: Server,
    open: Iterable<Socket>,
  ) {
    if (server.listening) this.#listens();
    else server.once('listening', () => this.#listens());
    const accepted = this.#isSecure ? 'secureConnection' : 'connection';
    server.on(accepted, (socket: Socket) => void this.of(socket));
    for (const socket of open) this.of(socket);
  }

  get open(): number {
    return this.#connections.size;
  }

  get address(): string {
    return this.#address;
  }

  /** What is known of `socket`. */
  of(socket: Socket): RpcConnection {
    let connection = this.#connections.get(socket);
    if (connection === undefined) {
      connection = new RpcConnection(socket, (idle) => void this.#giveAway(idle));
      if (socket.destroyed) return connection;
      this.#connections.set(socket, connection);
      socket.once('close', () => this.#connections.delete(socket));
    }
    return connection;
  }

  /** Serves a connection that another process has given away. */
  take(handle: ConnectionHandle): void {
    // Another process had accepted it. Node's types leave out that option.
    const options: object = { handle, readable: true, writable: true };
    this.server.emit('connection', new Socket(options));
  }

  /**
   * Lets go of connections that owe no answer: gives them to another process, or
   * ends those that have been quiet.
   *
   * @param patient waits for that; else connections are read no more, or ended, to bring it about.
   * @param handOver without it, or where nobody takes one, all are ended.
   */
  closeIdle(patient: boolean, handOver?: HandOver): void {
    this.#handOver = this.#isSecure ? undefined : handOver;
    const now = performance.now();
    for (const connection of this.#connections.values()) {
      if (connection.endedAt !== undefined) {
        if (now - connection.endedAt > HALF_OPEN_MS) connection.socket.destroy();
        continue;
      }
      const quietMs = connection.quietMs(now);
      if (this.#giveAway(connection)) continue;
      if (connection.isHalfRead) continue;
      if (connection.isIdle && (!patient || quietMs >= QUIET_MS)) connection.end(now);
      else if (!patient && this.#mayGiveAway(connection)) connection.hold();
    }
  }

  /** @returns whether somebody may have it. */
  #giveAway(connection: RpcConnection): boolean {
    if (!connection.isIdle || !this.#mayGiveAway(connection)) return false;
    return connection.leave(this.#address, this.#handOver!);
  }

  /** Where a message is half read, or may be, its first half is in this process alone. */
  #mayGiveAway({ socket, isHalfRead }: RpcConnection): boolean {
    return this.#handOver !== undefined && !socket.destroyed && isHalfRead === false;
  }

  #listens(): void {
    const { address, port } = this.server.address() as AddressInfo;
    this.#address = `${address}:${port}`;
  }

  /** The keys of a TLS connection are in this process alone. */
  get #isSecure(): boolean {
    return this.server instanceof tls.Server;
  }
}
