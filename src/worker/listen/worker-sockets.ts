import type { Server } from 'node:http';
import net from 'node:net';
import { closeHandle } from '../../contract/ipc/index.js';
import { BACKLOG } from '../../contract/process/accept-queue.js';
import { emptySockets, expectClose, stopAccepting } from '../drain/leave-sockets.js';
import type { ConnectionLimit } from '../http/connection-limit.js';
import { HttpServers } from './http-servers.js';

/** Settings that http.Server gives each connection. An adopted socket needs them, too. Node's types lack them. */
type ConnectionOptions = Pick<
  net.ServerOpts,
  'allowHalfOpen' | 'noDelay' | 'keepAlive' | 'keepAliveInitialDelay' | 'highWaterMark'
>;

/** Everything that a worker listens on: its own servers, and the sockets of slots that have no worker. */
export class WorkerSockets {
  readonly servers: HttpServers;
  /** The server of the app, once it listens. */
  #adopting: Server | undefined;
  /** By slot. */
  readonly #adopted = new Map<number, net.Server>();
  /** Nobody is to accept from them after this process. */
  #isLast = false;
  #letGo = false;
  #release!: () => void;
  readonly #released = new Promise<void>((resolve) => (this.#release = resolve));

  /**
   * @param found is told of each server before its first connection.
   * @param limit holds for all of them together.
   */
  constructor(
    found: (server: Server) => void,
    private readonly limit: ConnectionLimit,
  ) {
    this.servers = new HttpServers(found, (server) => limit.applyTo(server));
  }

  /** The app listens: what comes over an adopted socket is for `server`. */
  mayAdopt(server: Server): void {
    this.#adopting = server;
  }

  /** Also listens on the slot's socket. @param handle missing if the process had no descriptor for it. */
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
    // The kernel decides: the socket may be closed by now.
    listener.on('error', () => this.release(slot));
    this.#adopted.set(slot, listener);
    (listener as unknown as { listen(handle: unknown, backlog: number): void }).listen(
      handle,
      BACKLOG,
    );
  }

  /** Stops accepting from it; connections that came over it stay. */
  release(slot: number): void {
    this.#adopted.get(slot)?.close();
    this.#adopted.delete(slot);
  }

  /** The whole cluster ends: what waits for these sockets is served by this process or by nobody. */
  nobodyFollows(): void {
    this.#isLast = true;
  }

  /** This process leaves before its time: others, or the primary, hold its sockets on. */
  othersFollow(): void {
    if (!this.#letGo) this.#isLast = false;
  }

  /** The primary holds none of them any more. */
  primaryClosed(): void {
    this.#letGo = true;
    this.#release();
  }

  /**
   * Closes them. Waiting connections are left to the processes that go on, or served first.
   *
   * @param others are to be closed with them.
   * @returns how many connections were reset.
   */
  async leave(atOnce: AbortSignal, others: readonly net.Server[]): Promise<number> {
    this.#adopting = undefined; // what the primary sends before it knows comes too late
    for (const server of this.servers.further) expectClose(server);
    const sockets = [...this.servers.all, ...this.#adopted.values(), ...others];
    if (this.#isLast) return emptySockets(sockets, this.#released, atOnce);
    for (const socket of sockets) stopAccepting(socket);
    return 0;
  }
}
