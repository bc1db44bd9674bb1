import { type Answer, request } from './http-client.js';
import http from 'node:http';

const TICK_MS = 10;

/**
 * Requests at a constant rate, whatever becomes of those before (an open loop):
 * every second on a connection of its own, the others on ones that are kept.
 * A request that is lost is counted and not repeated.
 */
export class SteadyLoad {
  answered = 0;
  readonly lost: Answer['outcome'][] = [];
  /** A drain closes connections that are idle for a second, and Node's agent repeats no request. */
  readonly #agent = new http.Agent({ keepAlive: true, timeout: 900 });
  readonly #running = new Set<Promise<void>>();
  readonly #timer: NodeJS.Timeout;

  /** @param paths asked for in turn. */
  constructor(base: string, paths: readonly string[], perSecond: number) {
    const began = performance.now();
    let sent = 0;
    this.#timer = setInterval(() => {
      const due = Math.floor(((performance.now() - began) / 1_000) * perSecond);
      while (sent < due) {
        const path = paths[sent % paths.length]!;
        const keeps = Math.floor(sent / paths.length) % 2 === 0;
        const one = this.#ask(base, path, keeps).finally(() => this.#running.delete(one));
        this.#running.add(one);
        sent += 1;
      }
    }, TICK_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#running);
    this.#agent.destroy();
  }

  async #ask(base: string, path: string, keeps: boolean): Promise<void> {
    const { outcome } = await request(base, path, keeps ? { agent: this.#agent } : {});
    if (outcome === 'ok') this.answered += 1;
    else this.lost.push(outcome);
  }
}
