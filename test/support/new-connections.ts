import { Clients } from './clients.js';
import { type Answer, request } from './http-client.js';

/** A slow path, so that a worker that dies has accepted requests that it has not answered. */
const SLOW_PATH = '/wait/20';

const PAUSE_MS = 10;

/** Clients that open a new connection for each request. Every second one asks for what takes 20 ms. */
export class NewConnections extends Clients {
  /** Answers of `/whoami` by pid. */
  readonly answeredBy = new Map<number, number>();
  /** Requests that were not answered with 200. */
  readonly lost: Pick<Answer, 'clientPort' | 'outcome'>[] = [];

  /** @param urls each has `clients` clients. */
  constructor(urls: readonly string[], clients = 6) {
    const paths = Array.from({ length: clients }, (_, i) => (i % 2 === 0 ? '/whoami' : SLOW_PATH));
    super(
      urls.flatMap((url) => paths.map((path) => () => this.#ask(url, path))),
      PAUSE_MS,
    );
  }

  async #ask(url: string, path: string): Promise<boolean> {
    const { outcome, clientPort, body } = await request(url, path);
    if (outcome !== 'ok') {
      this.lost.push({ clientPort, outcome });
      return false;
    }
    if (path !== SLOW_PATH) {
      const { pid } = JSON.parse(body) as { pid: number };
      this.answeredBy.set(pid, (this.answeredBy.get(pid) ?? 0) + 1);
    }
    return true;
  }
}
