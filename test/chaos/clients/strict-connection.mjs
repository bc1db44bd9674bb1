import net from 'node:net';
import { Lost, PATIENCE_MS } from './lost.mjs';

/**
 * One connection over TCP that is read strictly: whatever it brings must have been asked for, and
 * it ends only where its server has said so.
 */
export class StrictConnection {
  /** The worker it is at, once an answer has told. */
  pid;
  /** When it last brought something, or was made. */
  since = Date.now();
  /** It has brought an answer. */
  answered = false;
  received = '';
  /** How its server ended it. */
  end;
  #socket;
  #wake = () => {};

  constructor(socket) {
    this.#socket = socket;
    const ended = (end) => {
      this.end ??= end;
      this.#wake();
    };
    socket.on('data', (chunk) => {
      this.received += chunk;
      this.since = Date.now();
      this.#wake();
    });
    socket.on('end', () => ended(new Lost('closed', 'FIN')));
    socket.on('error', (error) => {
      // A reset that follows a FIN is a reset: what this client still had to say was thrown away.
      this.end = Lost.of(error);
      this.#wake();
    });
    socket.on('close', () => ended(new Lost('closed', 'closed')));
  }

  static open(port) {
    return new Promise((resolve, reject) => {
      // Half open after a FIN: as it goes on sending, it sees whether that is thrown away.
      const socket = net.connect({ host: '127.0.0.1', port, allowHalfOpen: true });
      const timer = setTimeout(
        () => socket.destroy(new Lost('timeout', 'no connection')),
        PATIENCE_MS,
      );
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

  /** Resolves with what `take` makes of what has been received, once that is not `undefined`. */
  async take(take) {
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      this.#wake();
    }, PATIENCE_MS);
    try {
      for (;;) {
        const taken = take(this);
        if (taken !== undefined) return taken;
        if (this.end) throw this.end;
        if (late) throw new Lost('timeout', `nothing for ${PATIENCE_MS} ms`);
        await new Promise((resolve) => (this.#wake = resolve));
      }
    } finally {
      clearTimeout(timer);
    }
  }

  /** After its server has said that this is the last answer: nothing but a FIN may come. */
  async leave() {
    const end = await this.take(({ end }) => end);
    this.#socket.end();
    if (this.received !== '') throw new Lost('unexpected', 'more than was asked for');
    if (end.message !== 'FIN') throw end;
  }

  close() {
    this.#socket.end();
    this.#socket.resume();
  }

  destroy() {
    this.#socket.destroy();
  }
}
