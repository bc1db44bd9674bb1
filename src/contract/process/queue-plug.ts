import net from 'node:net';

/** A socket of libuv, as far as its addresses are asked for: `TCP`. */
export interface AddressedHandle {
  getsockname?(out: { address?: string; port?: number }): number;
}

const LOOPBACK: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

/**
 * A connection of our own that takes the last place in an accept queue. With a backlog of 0 the
 * queue has one place: a client that took it just before the socket is closed would be reset.
 * While the place is taken the kernel leaves a client's SYN without an answer, and the client
 * learns by the next one that nobody listens.
 */
export class QueuePlug {
  readonly #socket: net.Socket;

  private constructor(address: { readonly host: string; readonly port: number }) {
    this.#socket = net.connect(address);
    this.#socket.on('error', () => {}); // it is reset with the queue
  }

  /** @returns `undefined` for a socket that is not TCP. Resolves before the event loop turns. */
  static async put(handle: AddressedHandle): Promise<QueuePlug | undefined> {
    const own: { address?: string; port?: number } = {};
    if (handle.getsockname?.(own) !== 0 || own.port === undefined) return undefined;
    const host = LOOPBACK[own.address!] ?? own.address!;
    const plug = new QueuePlug({ host, port: own.port });
    // Node connects in the next tick. By loopback the kernel is done when that call is back.
    await new Promise<void>((resolve) => process.nextTick(resolve));
    return plug;
  }

  /** Whether it has the place. `socket.remoteAddress` says so only when the event loop has turned. */
  get holds(): boolean {
    type Peer = { readonly _handle?: { getpeername?(out: object): number } | null };
    return (this.#socket as unknown as Peer)._handle?.getpeername?.({}) === 0;
  }

  remove(): void {
    this.#socket.destroy();
  }
}
