import { closeHandle } from '../../contract/ipc/index.js';
import type { Server } from 'node:http';
import type net from 'node:net';
import { AdoptedSockets } from './adopted-sockets.js';
import { HttpServers } from './http-servers.js';
import type { ConnectionLimit } from '../http/connection-limit.js';
import { emptySockets, expectClose, stopAccepting } from '../drain/leave-sockets.js';

/** Everything that a worker listens on: its own servers, and the sockets of slots that have no worker. */
export class WorkerSockets {
  readonly servers: HttpServers;
  #adopted: AdoptedSockets | undefined;
  /** Nobody is to accept from them after this process. */
  #last = false;
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
    this.#adopted = new AdoptedSockets(server, this.limit);
  }

  adopt(slot: number, handle: unknown): void {
    if (this.#adopted === undefined) closeHandle(handle);
    else this.#adopted.adopt(slot, handle as { close(): void } | undefined);
  }

  release(slot: number): void {
    this.#adopted?.release(slot);
  }

  /** The whole cluster ends: what waits for these sockets is served by this process or by nobody. */
  beLast(): void {
    this.#last = true;
  }

  /** The primary holds none of them any more. */
  primaryLetGo(): void {
    this.#letGo = true;
    this.#release();
  }

  /** This process leaves before its time: others, or the primary, hold its sockets on. */
  leaveToOthers(): void {
    if (!this.#letGo) this.#last = false;
  }

  /**
   * Closes them. Waiting connections are left to the processes that go on, or served first.
   *
   * @param others are to be closed with them.
   * @returns what was reset.
   */
  async leave(atOnce: AbortSignal, others: readonly net.Server[]): Promise<number> {
    for (const server of this.servers.further) expectClose(server);
    const sockets = [...this.servers.all, ...(this.#adopted?.leave() ?? []), ...others];
    if (this.#last) return emptySockets(sockets, this.#released, atOnce);
    for (const socket of sockets) stopAccepting(socket);
    return 0;
  }
}
