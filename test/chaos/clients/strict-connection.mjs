import net from 'node:net';

/** How long anything may take: longer than a hung worker may go on, and its successor takes to start. */
export const PATIENCE_MS = 20_000;

/** A request, or a connection, that ended in no way that its server had announced. */
export class Lost extends Error {
  /** @param outcome reset, closed, refused, timeout or unexpected. */
  constructor(outcome, what) {
    super(what);
    this.outcome = outcome;
  }

  /** By what an error of a socket says. */
  static of(error) {
    const { code, message } = error;
    const outcome = { ECONNREFUSED: 'refused', ETIMEDOUT: 'timeout' }[code] ?? 'reset';
    return new Lost(outcome, code ?? message);
  }
}

/**
 * One connection over TCP that is read strictly: whatever it brings must have been asked for, and
 * it ends only where its server has said so.
 */
export class StrictConnection {
  /** The worker it is at, once an answer names it. */
  pid;
  /** When it last brought something, or was made. */
  since = Date.now();
  /** When the last request was sent. */
  asked;
  /** It has brought an answer. */
  answered = false;
  #received = '';
  /** How its server ended it. */
  #end;
  #socket;
  #wake = () => {};

  constructor(socket) {
    this.#socket = socket;
    const ended = (end) => {
      this.#end ??= end;
      this.#wake();
    };
    socket.on('data', (chunk) => {
      this.#received += chunk;
      this.since = Date.now();
      this.#wake();
    });
    socket.on('end', () => ended(new Lost('closed', 'FIN')));
    socket.on('error', (error) => {
      // A reset that follows a FIN is a reset: what this client still had to say was thrown away.
      this.#end = Lost.of(error);
      this.#wake();
    });
    socket.on('close', () => ended(new Lost('closed', 'closed')));
  }

  /**
   * @param {number} port
   * @returns {Promise<StrictConnection>}
   */
  static open(port) {
    return new Promise((resolve, reject) => {
      // Half open after a FIN: as it goes on sending, it sees whether that is thrown away.
      const socket = net.connect({ host: '127.0.0.1', port, allowHalfOpen: true });
      const late = () => socket.destroy(new Lost('timeout', 'no connection'));
      const timer = setTimeout(late, PATIENCE_MS);
      const refused = (error) => {
        clearTimeout(timer);
        reject(error instanceof Lost ? error : Lost.of(error));
      };
      socket.once('error', refused);
      socket.once('connect', () => {
        clearTimeout(timer);
        socket.off('error', refused);
        resolve(new StrictConnection(socket.setNoDelay(true).setEncoding('latin1')));
      });
    });
  }

  write(text) {
    this.#socket.write(text, 'latin1');
  }

  /**
   * Resolves with the next answer with a `Content-Length`, once it is whole.
   *
   * @throws Lost
   */
  answer() {
    return this.#take(() => {
      const headLength = this.#received.indexOf('\r\n\r\n') + 4;
      if (headLength < 4) return undefined;
      const head = this.#received.slice(0, headLength);
      const length = Number(/^content-length: (\d+)\r$/im.exec(head)?.[1] ?? 0);
      if (this.#received.length < headLength + length) return undefined;
      const body = this.#received.slice(headLength, headLength + length);
      this.#received = this.#received.slice(headLength + length);
      this.pid = Number(/^x-worker: (\d+)\r$/im.exec(head)?.[1]) || this.pid;
      this.answered = true;
      const status = Number(head.slice('HTTP/1.1 '.length, 'HTTP/1.1 200'.length));
      return { status, body, last: /^connection: close\r$/im.test(head) };
    });
  }

  /** After its server has said that this is the last answer: nothing but a FIN may come. */
  async leave() {
    const end = await this.#take(() => this.#end);
    this.#socket.end();
    if (this.#received !== '') throw new Lost('unexpected', 'more than was asked for');
    if (end.message !== 'FIN') throw end;
  }

  close() {
    this.#socket.end();
    this.#socket.resume();
  }

  destroy() {
    this.#socket.destroy();
  }

  /** Resolves with the first result of `take` that is not `undefined`; it is called after each event. */
  async #take(take) {
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      this.#wake();
    }, PATIENCE_MS);
    try {
      for (;;) {
        const taken = take();
        if (taken !== undefined) return taken;
        if (this.#end) throw this.#end;
        if (late) throw new Lost('timeout', `nothing for ${PATIENCE_MS} ms`);
        await new Promise((resolve) => (this.#wake = resolve));
      }
    } finally {
      clearTimeout(timer);
    }
  }
}
