import net from 'node:net';

/** The part of libuv's handle `TCP` that returns the socket's own address. */
export interface AddressedHandle {
  getsockname?(out: { address?: string; port?: number }): number;
}

const LOOPBACK: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

/**
 * A connection of this process to its own socket that takes the last place in the accept queue.
 * With a backlog of 0 the queue has one place. A client that took this place just before the close
 * of the socket would be reset. While the place is taken, the kernel does not answer a client's
 * SYN. The client sends it again, and by then nobody listens, so the connection is refused.
 */
export class QueuePlug {
  readonly #socket: net.Socket;

  private constructor(address: { readonly host: string; readonly port: number }) {
    this.#socket = net.connect(address);
    this.#socket.on('error', () => {}); // the plug is reset with the queue
  }

  /** @returns `undefined` for a socket that is not TCP. Resolves before the event loop turns. */
  static async put(handle: AddressedHandle): Promise<QueuePlug | undefined> {
    const own: { address?: string; port?: number } = {};
    if (handle.getsockname?.(own) !== 0 || own.port === undefined) return undefined;
    const host = LOOPBACK[own.address!] ?? own.address!;
    const plug = new QueuePlug({ host, port: own.port });
    // Node connects in the next tick. Over loopback, the connection exists when connect(2) returns.
    await new Promise<void>((resolve) => process.nextTick(resolve));
    return plug;
  }

  /** Whether the plug has the place. `socket.remoteAddress` would show it only after a turn of the event loop. */
  get holds(): boolean {
    type Peer = { readonly _handle?: { getpeername?(out: object): number } | null };
    return (this.#socket as unknown as Peer)._handle?.getpeername?.({}) === 0;
  }

  remove(): void {
    this.#socket.destroy();
  }
}
