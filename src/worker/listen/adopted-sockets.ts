import type { Server } from 'node:http';
import net from 'node:net';
import { BACKLOG } from '../../contract/process/accept-queue.js';
import type { ConnectionLimit } from '../http/connection-limit.js';

/** Settings that http.Server gives each connection. An adopted socket needs them, too. Node's types lack them. */
type ConnectionOptions = Pick<
  net.ServerOpts,
  'allowHalfOpen' | 'noDelay' | 'keepAlive' | 'keepAliveInitialDelay' | 'highWaterMark'
>;

/** The handle that comes with the message. */
interface ListeningHandle {
  close(): void;
}

/** Sockets of slots that have no worker, on which this one listens besides its own. */
export class AdoptedSockets {
  readonly #listeners = new Map<number, net.Server>();
  /** The worker drains: what the primary sent before it knew comes too late. */
  #closed = false;

  constructor(
    private readonly server: Server,
    private readonly limit?: Pick<ConnectionLimit, 'share'>,
  ) {}

  /** Serves what comes over the slot's socket as if it came over the server's own. */
  adopt(slot: number, handle: ListeningHandle | undefined): void {
    // The kernel drops a handle on its way to a process that has no descriptor left.
    if (handle === undefined) return;
    if (this.#closed || this.#listeners.has(slot)) return handle.close();
    const { allowHalfOpen, noDelay, keepAlive, keepAliveInitialDelay, highWaterMark } = this
      .server as Server & ConnectionOptions;
    const listener = net.createServer({
      allowHalfOpen: allowHalfOpen ?? false,
      noDelay: noDelay ?? false,
      keepAlive: keepAlive ?? false,
      keepAliveInitialDelay: keepAliveInitialDelay ?? 0,
      ...(highWaterMark !== undefined && { highWaterMark }),
    });
    this.limit?.share(listener, this.server);
    listener.on('connection', (socket) => this.server.emit('connection', socket));
    // The kernel decides: the socket may be closed by now.
    listener.on('error', () => this.release(slot));
    this.#listeners.set(slot, listener);
    (listener as unknown as { listen(handle: unknown, backlog: number): void }).listen(
      handle,
      BACKLOG,
    );
  }

  /** Stops to accept from it; connections that came over it stay. */
  release(slot: number): void {
    this.#listeners.get(slot)?.close();
    this.#listeners.delete(slot);
  }

  /** Adopts nothing any more. @returns what listens on those that were adopted, for the caller to close. */
  leave(): readonly net.Server[] {
    this.#closed = true;
    return [...this.#listeners.values()];
  }
}
