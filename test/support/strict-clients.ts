import { setTimeout as delay } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { StrictConnection } from '../chaos/clients/strict-connection.mjs';

interface StrictAnswer {
  readonly status: number;
  readonly body: string;
  /** It says `Connection: close`. */
  readonly last: boolean;
}

/** Before a client that was failed connects again: else it would do nothing else. */
const AFTER_FAULT_MS = 50;

/** How often a client that waits looks whether it may come back. */
const AWAY_MS = 20;

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

async function answersOf(connection: StrictConnection, count: number): Promise<StrictAnswer[]> {
  const answers: StrictAnswer[] = [];
  while (answers.length < count) answers.push(await connection.answer());
  return answers;
}

/** Asks in one of the ways of {@link StrictKind}. */
const ASK: Readonly<
  Record<StrictKind, (connection: StrictConnection, turn: number) => Promise<StrictAnswer[]>>
> = {
  get: async (connection) => {
    connection.write(get('/whoami'));
    return answersOf(connection, 1);
  },
  post: async (connection) => {
    connection.write(post('/echo', 'application/json', BODY.length) + BODY);
    const answers = await answersOf(connection, 1);
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
    const answers = await answersOf(connection, 1);
    // Fastify looks at the type of the body before it misses the route.
    for (const answer of answers) expectAnswer(answer, [404, 415].includes(answer.status));
    return answers;
  },
  pipelining: async (connection) => {
    connection.write(get('/whoami').repeat(3));
    return answersOf(connection, 3);
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

  /** The clients that wait connect again. */
  comeBack(): void {
    this.#withdrawn = new Set();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#clients);
  }

  async #client(id: number, kind: StrictKind, pauseMs: number): Promise<void> {
    while (!this.#stopped) {
      let connection: StrictConnection | undefined;
      try {
        connection = await StrictConnection.open(
          Number(new URL(this.bases[this.#opened++ % this.bases.length]!).port),
        );
        await this.#converse(id, connection, kind, pauseMs);
        while (this.#withdrawn.has(id) && !this.#stopped) await delay(AWAY_MS);
      } catch (error) {
        connection?.destroy();
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
        await connection.leave();
        this.moved += 1;
        return;
      }
      if (this.#stopped || this.#withdrawn.has(id)) {
        connection.close();
        return;
      }
      await delay(pauseMs);
      answers = await ASK[kind](connection, turn);
    }
  }
}
