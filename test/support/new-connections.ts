import http from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { PATIENCE_MS } from './patience.js';
import { Waiters } from './waiters.js';

/** A slow path, so that a worker that dies has accepted requests that it has not answered. */
const SLOW_PATH = '/wait/20';

/** Without this pause the clients would take all CPU time, and a worker would hardly boot. */
const PAUSE_MS = 10;

/** A request that was not answered with 200. */
export interface LostRequest {
  /** Port of the client; `undefined` where it was never connected. */
  readonly clientPort: number | undefined;
  readonly serverPort: number;
  /** The code of the request's error, or the status of its response. */
  readonly outcome: string;
  /** The time of `performance.now()`, in milliseconds. */
  readonly startedAt: number;
}

/**
 * Clients that ask one time after the other, open a new connection for each request and never ask
 * twice for what was lost. Every second one asks for what takes 20 ms.
 */
export class NewConnections {
  served = 0;
  /** Answers of `/whoami` by pid. */
  answeredBy = new Map<number, number>();
  #lost: LostRequest[] = [];
  readonly #underWay = new Set<Promise<void>>();
  readonly #clients: Promise<void>[];
  readonly #waiters = new Waiters();
  #stopped = false;

  /** @param urls each has `clients` clients. */
  constructor(urls: readonly string[], clients = 6) {
    this.#clients = urls.flatMap((url) =>
      Array.from({ length: clients }, (_, index) =>
        this.#client(Number(new URL(url).port), index % 2 === 0 ? '/whoami' : SLOW_PATH),
      ),
    );
  }

  /** Requests that were lost since the last call of this method. */
  takeLost(): LostRequest[] {
    const lost = this.#lost;
    this.#lost = [];
    return lost;
  }

  /** Resolves once `count` more were answered. */
  async serves(count: number): Promise<void> {
    const goal = this.served + count;
    await this.#waiters.until({
      holds: () => this.served >= goal,
      late: () => `${goal - this.served} not served: ${JSON.stringify(this.#lost)}`,
    });
  }

  /** Resolves once every request that is under way now has been answered or lost. */
  async turnOver(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#clients);
  }

  async #client(port: number, path: string): Promise<void> {
    while (!this.#stopped) {
      const asked = this.#ask(port, path);
      this.#underWay.add(asked);
      await asked;
      this.#underWay.delete(asked);
      this.#waiters.look();
      await delay(PAUSE_MS);
    }
  }

  #ask(port: number, path: string): Promise<void> {
    const startedAt = performance.now();
    let clientPort: number | undefined;
    return new Promise((resolve) => {
      const lose = (outcome: string): void => {
        this.#lost.push({ clientPort, serverPort: port, outcome, startedAt });
        resolve();
      };
      const request = http.get({ host: '127.0.0.1', port, path, agent: false }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        response.on('error', ({ message }) => lose(`in the response: ${message}`));
        response.on('end', () => {
          if (response.statusCode !== 200) return lose(`status ${response.statusCode}`);
          this.served += 1;
          if (path === '/whoami') {
            const { pid } = JSON.parse(text) as { pid: number };
            this.answeredBy.set(pid, (this.answeredBy.get(pid) ?? 0) + 1);
          }
          resolve();
        });
      });
      request.on('socket', (socket) => {
        socket.on('connect', () => (clientPort = socket.localPort));
      });
      request.setTimeout(PATIENCE_MS, () => request.destroy(new Error('no answer')));
      request.on('error', (error: NodeJS.ErrnoException) => lose(error.code ?? error.message));
    });
  }
}
