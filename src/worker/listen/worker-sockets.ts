import type { Server } from 'node:http';
import net from 'node:net';
import { closeHandle } from '../../contract/messages.js';
import { emptySockets, expectClose, stopAccepting } from '../drain/leave-sockets.js';
import type { ConnectionLimit } from '../http/connection-limit.js';
import { HttpServers } from './http-servers.js';
import { listenOn } from './listen.js';

/** Connection settings of http.Server, which adopted sockets get too. Node's types lack them. */
type ConnectionOptions = Pick<
  net.ServerOpts,
  'allowHalfOpen' | 'noDelay' | 'keepAlive' | 'keepAliveInitialDelay' | 'highWaterMark'
>;

/** All sockets that a worker listens on: its own, and the sockets of slots without a worker. */
export class WorkerSockets {
  readonly servers: HttpServers;
  #adopting: Server | undefined;
  /** The servers that listen on other slots' sockets, by slot number. */
  readonly #adopted = new Map<number, net.Server>();
  /** Whether the whole cluster ends, so that no other process will accept from these sockets. */
  #isLast = false;
  /** Whether the primary has closed its copies of the sockets. */
  #letGo = false;
  /** Whether systemd holds the app's socket too, and keeps its queue for the next process. */
  #isKept = false;
  #release!: () => void;
  readonly #released = new Promise<void>((resolve) => (this.#release = resolve));

  /**
   * @param found is called for each server before its first connection.
   * @param limit counts the connections of all sockets together.
   */
  constructor(
    found: (server: Server) => void,
    private readonly limit: ConnectionLimit,
  ) {
    this.servers = new HttpServers(found, (server) => limit.applyTo(server));
  }

  /** Called when the app listens. Connections from adopted sockets go to `server` from then on. */
  mayAdopt(server: Server): void {
    this.#adopting = server;
  }

  /** Also listens on the slot's socket. @param handle `undefined` if no descriptor was free. */
  adopt(slot: number, handle: unknown): void {
    const server = this.#adopting as (Server & ConnectionOptions) | undefined;
    if (server === undefined || this.#adopted.has(slot)) return closeHandle(handle);
    if (handle === undefined) return;
    const { allowHalfOpen, noDelay, keepAlive, keepAliveInitialDelay, highWaterMark } = server;
    const listener = net.createServer({
      allowHalfOpen: allowHalfOpen ?? false,
      noDelay: noDelay ?? false,
      keepAlive: keepAlive ?? false,
      keepAliveInitialDelay: keepAliveInitialDelay ?? 0,
      ...(highWaterMark !== undefined && { highWaterMark }),
    });
    this.limit.share(listener, server);
    listener.on('connection', (socket) => server.emit('connection', socket));
    // Listening fails if the socket was closed in the meantime. In this case the slot is released.
    listener.on('error', () => this.release(slot));
    this.#adopted.set(slot, listener);
    listenOn(listener, handle);
  }

  /** Stops accepting from the slot's socket. Connections that were accepted from it stay open. */
  release(slot: number): void {
    this.#adopted.get(slot)?.close();
    this.#adopted.delete(slot);
  }

  /** The whole cluster ends: only this process can still serve the connections in the backlogs. */
  nobodyFollows(): void {
    this.#isLast = true;
  }

  /** This process ends before the cluster does: other processes keep its sockets open. */
  othersFollow(): void {
    if (!this.#letGo) this.#isLast = false;
  }

  /** systemd holds the app's socket too, so its queue is left to the next process. */
  keptBySystemd(): void {
    this.#isKept = true;
  }

  /** The primary has closed its copies of all sockets. */
  primaryClosed(): void {
    this.#letGo = true;
    this.#release();
  }

  /**
   * Closes all sockets. Connections in their backlogs are left to other processes that keep the
   * sockets open, or to systemd if it holds the socket too. Without other processes, this process
   * accepts and serves the connections first.
   *
   * @param atOnce when aborted, closes the sockets without further waiting.
   * @param others other listening servers to close, such as the servers of TCP microservices.
   */
  async leave(atOnce: AbortSignal, others: readonly net.Server[]): Promise<void> {
    const kept = this.#isKept ? this.#adopting : undefined;
    this.#adopting = undefined; // refuses sockets that the primary still sends
    for (const server of this.servers.further) expectClose(server);
    const sockets = [...this.servers.all, ...this.#adopted.values(), ...others];
    const closing = this.#isLast ? sockets.filter((socket) => socket === kept) : sockets;
    for (const socket of closing) stopAccepting(socket);
    if (this.#isLast) await emptySockets(sockets, this.#released, atOnce);
  }
}
