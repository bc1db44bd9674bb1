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

/** `get`: GET /whoami. `pipelining`: three of them in one write, always. */
export type StrictKind = 'get' | 'pipelining';

export interface Fault {
  readonly kind: StrictKind;
  /** The worker of the connection, where it had told. */
  readonly pid: number | undefined;
  readonly what: string;
}

async function answersOf(connection: StrictConnection, count: number): Promise<StrictAnswer[]> {
  const answers: StrictAnswer[] = [];
  while (answers.length < count) answers.push(await connection.answer());
  return answers;
}

/** Asks in one of the ways of {@link StrictKind}. */
function ask(kind: StrictKind, connection: StrictConnection): Promise<StrictAnswer[]> {
  const count = kind === 'get' ? 1 : 3;
  connection.write('GET /whoami HTTP/1.1\r\nHost: test\r\n\r\n'.repeat(count));
  return answersOf(connection, count);
}

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
    let answers = await ask(kind, connection);
    const { pid } = JSON.parse(answers[0]!.body) as { pid: number };
    this.#met.set(id, pid);
    for (;;) {
      this.served += answers.length;
      if (answers.slice(0, -1).some(({ last }) => last)) throw new Error('a close before the last');
      if (answers.at(-1)!.last) {
        await connection.leave();
        this.moved += 1;
        return;
      }
      if (this.#stopped) {
        connection.close();
        return;
      }
      await delay(pauseMs);
      answers = await ask(kind, connection);
    }
  }
}
