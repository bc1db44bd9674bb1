import net from 'node:net';
import { Waiters } from './waiters.js';

/** How a connection ended, as its client sees it: by FIN, or by what error. */
export type Ending = 'fin' | (string & {});

/** One TCP connection, for what an HTTP client hides: parked, silent, pipelined, half a request. */
export class RawClient {
  /** Everything received. */
  text = '';
  readonly ended: Promise<Ending>;
  readonly #socket: net.Socket;
  #ending: Ending | undefined;
  readonly #waiters = new Waiters();

  private constructor(socket: net.Socket) {
    this.#socket = socket;
    this.ended = new Promise((resolve) => {
      const end = (ending: Ending): void => {
        this.#ending ??= ending;
        resolve(this.#ending);
        this.#waiters.look();
      };
      socket.on('end', () => end('fin'));
      socket.on('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
      socket.on('close', () => end('closed by this client'));
    });
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      this.text += chunk;
      this.#waiters.look();
    });
  }

  /** Connects to a URL; rejects where it is refused. */
  static open(base: string): Promise<RawClient> {
    const { hostname, port } = new URL(base);
    return new Promise((resolve, reject) => {
      const socket = net.connect({ host: hostname, port: Number(port) }, () => {
        socket.off('error', reject);
        resolve(client);
      });
      socket.once('error', reject);
      const client = new RawClient(socket);
    });
  }

  write(text: string): void {
    this.#socket.write(text);
  }

  /** Writes a GET request for each path, all at once. */
  get(...paths: string[]): void {
    this.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: test\r\n\r\n`).join(''));
  }

  /** Resolves once what was received matches. */
  until(pattern: RegExp): Promise<void> {
    return this.#waiters.until({
      holds: () => pattern.test(this.text),
      lost: () => this.#ending && `${this.#ending} before ${pattern}: ${this.text}`,
      late: () => `no ${pattern}: ${this.text}`,
    });
  }

  /** Resolves with how it ended, or fails. */
  async end(): Promise<Ending> {
    await this.#waiters.until({
      holds: () => this.#ending !== undefined,
      late: () => `still open: ${this.text.slice(-2_000)}`,
    });
    return this.ended;
  }

  destroy(): void {
    this.#socket.destroy();
  }
}
