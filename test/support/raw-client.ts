import net from 'node:net';
import { PATIENCE_MS } from './patience.js';

/** How a connection ended, as its client sees it: by FIN, or by what error. */
export type Ending = 'fin' | (string & {});

/** One TCP connection, for what an HTTP client hides: parked, silent, pipelined, half a request. */
export class RawClient {
  /** Everything received. */
  text = '';
  readonly ended: Promise<Ending>;
  readonly #socket: net.Socket;
  #ending: Ending | undefined;
  readonly #watchers = new Set<() => void>();

  private constructor(socket: net.Socket) {
    this.#socket = socket;
    this.ended = new Promise((resolve) => {
      const end = (ending: Ending): void => {
        this.#ending ??= ending;
        resolve(this.#ending);
        for (const watcher of this.#watchers) watcher();
      };
      socket.on('end', () => end('fin'));
      socket.on('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
      socket.on('close', () => end('closed by this client'));
    });
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      this.text += chunk;
      for (const watcher of this.#watchers) watcher();
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
  async until(pattern: RegExp, timeoutMs = PATIENCE_MS): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const settle = (done: () => void): void => {
        clearTimeout(timer);
        this.#watchers.delete(check);
        done();
      };
      const check = (): void => {
        if (pattern.test(this.text)) settle(resolve);
        else if (this.#ending) {
          settle(() => reject(new Error(`${this.#ending} before ${pattern}: ${this.text}`)));
        }
      };
      const timer = setTimeout(
        () => settle(() => reject(new Error(`no ${pattern} in ${timeoutMs} ms: ${this.text}`))),
        timeoutMs,
      );
      this.#watchers.add(check);
      check();
    });
  }

  /** Resolves with how it ended, or fails. */
  async end(timeoutMs = PATIENCE_MS): Promise<Ending> {
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () => reject(new Error(`still open after ${timeoutMs} ms: ${this.text.slice(-2_000)}`)),
        timeoutMs,
      );
    });
    try {
      return await Promise.race([this.ended, timeout]);
    } finally {
      clearTimeout(timer);
    }
  }

  destroy(): void {
    this.#socket.destroy();
  }
}
