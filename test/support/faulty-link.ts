import net from 'node:net';

/** A network between processes and a server on 127.0.0.1, which breaks when it is told to. */
export class FaultyLink {
  readonly #sockets = new Set<net.Socket>();
  readonly #server: net.Server;
  #isSilent = false;

  private constructor(private readonly to: number) {
    this.#server = net.createServer((near) => this.#connect(near));
  }

  static async open(to: number): Promise<FaultyLink> {
    const link = new FaultyLink(to);
    await new Promise<void>((resolve) => link.#server.listen(0, '127.0.0.1', resolve));
    return link;
  }

  get port(): number {
    return (this.#server.address() as net.AddressInfo).port;
  }

  /** Every connection is reset. New ones are as before. */
  cut(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  /** Drops all data without an error, on existing connections and on new ones. */
  fallSilent(): void {
    this.#isSilent = true;
    for (const socket of this.#sockets) socket.pause();
  }

  /**
   * Lets new connections through again. Connections from before stay silent, as if a router had
   * forgotten them.
   */
  speak(): void {
    this.#isSilent = false;
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #connect(near: net.Socket): void {
    this.#watch(near);
    if (this.#isSilent) return void near.pause();
    const far = net.connect(this.to, '127.0.0.1');
    this.#watch(far);
    for (const [from, into] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on('data', (chunk) => into.write(chunk));
      from.on('close', () => into.destroy());
    }
  }

  #watch(socket: net.Socket): void {
    this.#sockets.add(socket);
    socket.setNoDelay().on('error', () => {});
    socket.on('close', () => this.#sockets.delete(socket));
  }
}
