import net from 'node:net';
import { PATIENCE_MS } from './patience.js';
import { Waiters } from './waiters.js';

/** An answer of HTTP/1.1 with a `Content-Length`. */
export interface StrictAnswer {
  readonly status: number;
  readonly body: string;
  /** It says `Connection: close`. */
  readonly last: boolean;
}

/** One connection that is to end only after an answer that says so, and then by FIN. */
export class StrictConnection {
  /** Resolves when nothing more comes, with `fin` or with what else it was. */
  readonly ended: Promise<string>;
  readonly #socket: net.Socket;
  readonly #answers: StrictAnswer[] = [];
  #received = '';
  /** The server has said FIN. */
  #half = false;
  #end: string | undefined;
  readonly #waiters = new Waiters();

  private constructor(socket: net.Socket) {
    this.#socket = socket;
    this.ended = new Promise((resolve) => {
      let how: string | undefined;
      socket.on('end', () => {
        how ??= 'fin';
        this.#half = true;
        this.#waiters.look();
      });
      // A reset that follows a FIN is a reset: what the client still had to say was thrown away.
      socket.on('error', (error: NodeJS.ErrnoException) => (how = error.code ?? error.message));
      socket.on('close', () => {
        this.#end = how ?? 'closed by this client';
        this.#waiters.look();
        resolve(this.#end);
      });
    });
    socket.setNoDelay(true);
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      this.#received += chunk;
      this.#takeAnswers();
      this.#waiters.look();
    });
  }

  // Half open after a FIN: as it goes on sending, it sees whether that is thrown away.
  static open(base: string): Promise<StrictConnection> {
    const { hostname, port } = new URL(base);
    return new Promise((resolve, reject) => {
      const socket = net.connect(
        { host: hostname, port: Number(port), allowHalfOpen: true },
        () => {
          socket.off('error', reject);
          resolve(new StrictConnection(socket));
        },
      );
      socket.once('error', reject);
    });
  }

  write(text: string): void {
    this.#socket.write(text, 'latin1');
  }

  /** Resolves with the next answers; rejects where the connection ends without them. */
  async answers(count: number): Promise<StrictAnswer[]> {
    await this.#until(() => this.#answers.length >= count, `of ${count} answers`);
    return this.#answers.splice(0, count);
  }

  /** Resolves with how it ended; rejects where it does not. */
  async end(): Promise<string> {
    await this.#until(() => this.#half || this.#end !== undefined, 'of its end');
    this.#socket.end();
    await this.ended;
    return this.#received === '' && this.#answers.length === 0
      ? this.#end!
      : `more than was asked for: ${this.#received.slice(0, 100)}`;
  }

  close(): void {
    this.#socket.end();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #until(holds: () => boolean, what: string): Promise<void> {
    return this.#waiters.until({
      holds,
      lost: () =>
        this.#half || this.#end !== undefined ? `${this.#end ?? 'fin'} instead ${what}` : undefined,
      late: () => `${PATIENCE_MS} ms instead ${what}`,
    });
  }

  #takeAnswers(): void {
    for (;;) {
      const headLength = this.#received.indexOf('\r\n\r\n') + 4;
      if (headLength < 4) return;
      const head = this.#received.slice(0, headLength);
      const length = Number(/^content-length: (\d+)\r$/im.exec(head)?.[1]);
      if (!(this.#received.length >= headLength + length)) return;
      this.#answers.push({
        status: Number(head.slice('HTTP/1.1 '.length, 'HTTP/1.1 200'.length)),
        body: this.#received.slice(headLength, headLength + length),
        last: /^connection: close\r$/im.test(head),
      });
      this.#received = this.#received.slice(headLength + length);
    }
  }
}
