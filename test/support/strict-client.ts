import net from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { onTestFinished } from 'vitest';

/** How long an answer, or the end of a connection that was announced, may take. */
const PATIENCE_MS = 20_000;

/** Before a client that was failed connects again: else it would do nothing else. */
const AFTER_FAULT_MS = 50;

/** How often a client that waits looks whether it may come back. */
const AWAY_MS = 20;

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
  #end: string | undefined;
  #wake: () => void = () => {};

  private constructor(socket: net.Socket) {
    this.#socket = socket;
    this.ended = new Promise((resolve) => {
      let how: string | undefined;
      socket.on('end', () => (how ??= 'fin'));
      // A reset that follows a FIN is a reset: what the client still had to say was thrown away.
      socket.on('error', (error: NodeJS.ErrnoException) => (how = error.code ?? error.message));
      socket.on('close', () => {
        this.#end = how ?? 'closed by this client';
        this.#wake();
        resolve(this.#end);
      });
    });
    socket.setNoDelay(true);
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      this.#received += chunk;
      this.#takeAnswers();
      this.#wake();
    });
  }

  static open(base: string): Promise<StrictConnection> {
    const { hostname, port } = new URL(base);
    return new Promise((resolve, reject) => {
      const socket = net.connect({ host: hostname, port: Number(port) }, () => {
        socket.off('error', reject);
        resolve(new StrictConnection(socket));
      });
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
    await this.#until(() => this.#end !== undefined, 'of its end');
    return this.#received === '' && this.#answers.length === 0
      ? this.#end!
      : `more than was asked for: ${this.#received.slice(0, 100)}`;
  }

  close(): void {
    this.#socket.end();
  }

  async #until(holds: () => boolean, what: string): Promise<void> {
    if (holds()) return;
    await new Promise<void>((resolve, reject) => {
      const settle = (done: () => void): void => {
        clearTimeout(timer);
        this.#wake = () => {};
        done();
      };
      const check = (): void => {
        if (holds()) settle(resolve);
        else if (this.#end !== undefined) {
          settle(() => reject(new Error(`${this.#end} instead ${what}`)));
        }
      };
      const timer = setTimeout(
        () => settle(() => reject(new Error(`${PATIENCE_MS} ms instead ${what}`))),
        PATIENCE_MS,
      );
      this.#wake = check;
      check();
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

/**
 * `get`: GET /whoami. `post`: POST /echo with 16 KB. `early`: by turns a GET, and a POST that is
 * answered while its body of 64 KB is still being sent. `pipelining`: three GETs in one write,
 * always.
 */
export type StrictKind = 'get' | 'post' | 'early' | 'pipelining';

export interface Fault {
  readonly kind: StrictKind;
  /** The worker of the connection, where it had told. */
  readonly pid: number | undefined;
  readonly what: string;
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: test\r\n\r\n`;

const post = (path: string, type: string, length: number) =>
  `POST ${path} HTTP/1.1\r\nHost: test\r\nContent-Type: ${type}\r\nContent-Length: ${length}\r\n\r\n`;

const BODY = JSON.stringify({ text: 'x'.repeat(16 * 1024) });
const PIECE = 'x'.repeat(16 * 1024);
const PIECES = 4;
const BETWEEN_PIECES_MS = 2;

/** A fault where an answer is not as it should be. */
function expectAnswer({ status, body }: StrictAnswer, good: boolean): void {
  if (!good) throw new Error(`an answer ${status} ${body.slice(0, 100)}`);
}

/** Asks in one of the ways of {@link StrictKind}. */
const ASK: Readonly<
  Record<StrictKind, (connection: StrictConnection, turn: number) => Promise<StrictAnswer[]>>
> = {
  get: async (connection) => {
    connection.write(get('/whoami'));
    return connection.answers(1);
  },
  post: async (connection) => {
    connection.write(post('/echo', 'application/json', BODY.length) + BODY);
    const answers = await connection.answers(1);
    for (const answer of answers) {
      expectAnswer(answer, answer.status === 201 && answer.body === BODY);
    }
    return answers;
  },
  early: async (connection, turn) => {
    if (turn % 2 === 0) return ASK.get(connection, turn);
    connection.write(post('/nowhere', 'application/octet-stream', PIECES * PIECE.length));
    for (let piece = 0; piece < PIECES; piece++) {
      await delay(BETWEEN_PIECES_MS);
      connection.write(PIECE);
    }
    const answers = await connection.answers(1);
    // Fastify looks at the type of the body before it misses the route.
    for (const answer of answers) expectAnswer(answer, [404, 415].includes(answer.status));
    return answers;
  },
  pipelining: async (connection) => {
    connection.write(get('/whoami').repeat(3));
    return connection.answers(3);
  },
};

/**
 * Clients that keep their connections, and take it for a fault if one of them ends in any other
 * way than that an answer says `Connection: close`, and a FIN follows. They never ask twice.
 */
export class StrictClients {
  /** Requests answered well. */
  served = 0;
  /** Connections that the server has asked to leave, and ended well. */
  moved = 0;
  readonly faults: Fault[] = [];
  readonly #clients: Promise<void>[];
  #opened = 0;
  #stopped = false;
  /** The worker that each client is at. */
  readonly #met = new Map<number, number>();
  /** Clients that are to leave, and stay away. */
  #withdrawn: ReadonlySet<number> = new Set();

  constructor(
    /** Where to connect to, one after the other. */
    private readonly bases: readonly string[],
    {
      kinds,
      clients,
      pauseMs,
    }: {
      /** Shared out among the clients. Default `get`. */
      readonly kinds?: readonly StrictKind[];
      readonly clients: number;
      /** After each answer. */
      readonly pauseMs: number;
    },
  ) {
    const shared = kinds ?? ['get'];
    this.#clients = Array.from({ length: clients }, (_, index) =>
      this.#client(index, shared[index % shared.length]!, pauseMs),
    );
  }

  /** Stopped when the test that calls it ends, however it ends. */
  static forTest(...args: ConstructorParameters<typeof StrictClients>): StrictClients {
    const clients = new StrictClients(...args);
    onTestFinished(() => clients.stop());
    return clients;
  }

  /** Connections made so far. */
  get opened(): number {
    return this.#opened;
  }

  /** How many are at a worker. */
  at(pid: number): number {
    return [...this.#met.values()].filter((at) => at === pid).length;
  }

  /** Clients that are at this worker now close their connections between two requests, and wait. */
  withdrawFrom(pid: number): void {
    this.#withdrawn = new Set([...this.#met].filter(([, at]) => at === pid).map(([id]) => id));
  }

  /** Those that wait come back. */
  comeBack(): void {
    this.#withdrawn = new Set();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#clients);
  }

  async #client(id: number, kind: StrictKind, pauseMs: number): Promise<void> {
    while (!this.#stopped) {
      try {
        const connection = await StrictConnection.open(
          this.bases[this.#opened++ % this.bases.length]!,
        );
        await this.#converse(id, connection, kind, pauseMs);
        while (this.#withdrawn.has(id) && !this.#stopped) await delay(AWAY_MS);
      } catch (error) {
        if (this.#stopped) return;
        this.faults.push({ kind, pid: this.#met.get(id), what: (error as Error).message });
        await delay(AFTER_FAULT_MS);
      } finally {
        this.#met.delete(id);
      }
    }
  }

  async #converse(
    id: number,
    connection: StrictConnection,
    kind: StrictKind,
    pauseMs: number,
  ): Promise<void> {
    // Pipelining from its first byte on, where it is to.
    const introduction = await ASK[kind === 'pipelining' ? kind : 'get'](connection, 0);
    const { pid } = JSON.parse(introduction[0]!.body) as { pid: number };
    this.#met.set(id, pid);
    let answers = introduction;
    for (let turn = 1; ; turn++) {
      this.served += answers.length;
      if (answers.slice(0, -1).some(({ last }) => last)) throw new Error('a close before the last');
      if (answers.at(-1)!.last) {
        const end = await connection.end();
        if (end !== 'fin') throw new Error(`${end} after a close that was announced`);
        this.moved += 1;
        return;
      }
      if (this.#stopped || this.#withdrawn.has(id)) {
        connection.close();
        await connection.ended;
        return;
      }
      await delay(pauseMs);
      answers = await ASK[kind](connection, turn);
    }
  }
}
