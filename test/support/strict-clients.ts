import { setTimeout as delay } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { StrictConnection } from '../chaos/clients/strict-connection.mjs';
import { Clients } from './clients.js';

/** Before a client that was failed connects again: else it would do nothing else. */
const AFTER_FAULT_MS = 50;

interface Options {
  readonly clients: number;
  /** After each answer. */
  readonly pauseMs: number;
  /** How many requests a client sends in one write, always. `served` counts them as one. Default 1. */
  readonly pipelined?: number;
}

/** The connection of a client, and the worker that it is at. */
interface Kept {
  connection?: StrictConnection;
  pid?: number;
}

/**
 * Clients that keep their connections, and take it for a fault if one of them ends in any other
 * way than that an answer says `Connection: close`, and a FIN follows. They never ask twice.
 */
export class StrictClients extends Clients {
  /** Connections made so far. */
  opened = 0;
  /** Connections that the server has asked to leave, and ended well. */
  moved = 0;
  /** Each with the worker of the connection, where it had told. */
  readonly faults: { readonly pid: number | undefined; readonly what: string }[] = [];
  readonly #kept: readonly Kept[];

  constructor(base: string, { clients, pauseMs, pipelined = 1 }: Options) {
    const kept = Array.from({ length: clients }, (): Kept => ({}));
    super(
      kept.map((each) => () => this.#ask(Number(new URL(base).port), each, pipelined)),
      pauseMs,
    );
    this.#kept = kept;
  }

  /** Stopped when the test that calls it ends, however it ends. */
  static forTest(...args: ConstructorParameters<typeof StrictClients>): StrictClients {
    const clients = new StrictClients(...args);
    onTestFinished(() => clients.stop());
    return clients;
  }

  override async stop(): Promise<void> {
    await super.stop();
    for (const { connection } of this.#kept) connection?.close();
  }

  /** Sends `GET /whoami` so many times at once, on the connection that a client keeps. */
  async #ask(port: number, kept: Kept, times: number): Promise<boolean> {
    try {
      if (kept.connection === undefined) this.opened += 1;
      const connection = (kept.connection ??= await StrictConnection.open(port));
      connection.write('GET /whoami HTTP/1.1\r\nHost: test\r\n\r\n'.repeat(times));
      for (let left = times; left > 0; left -= 1) {
        const { body, last } = await connection.answer();
        kept.pid = (JSON.parse(body) as { pid: number }).pid;
        if (!last) continue;
        if (left > 1) throw new Error('a close before the last');
        await connection.leave();
        this.moved += 1;
        delete kept.connection;
        delete kept.pid;
      }
      return true;
    } catch (error) {
      kept.connection?.destroy();
      this.faults.push({ pid: kept.pid, what: (error as Error).message });
      delete kept.connection;
      delete kept.pid;
      await delay(AFTER_FAULT_MS);
      return false;
    }
  }
}
