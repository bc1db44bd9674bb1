import { setTimeout as delay } from 'node:timers/promises';
import { Waiters } from './waiters.js';

/** Clients that send one request after the other until they are stopped, and never send one twice. */
export class Clients {
  /** Requests that were answered well. */
  served = 0;
  readonly #clients: readonly Promise<void>[];
  readonly #underWay = new Set<Promise<boolean>>();
  readonly #waiters = new Waiters();
  #stopped = false;

  /**
   * @param asks one for each client: sends a request, and resolves with whether it was answered well.
   * @param pauseMs after each answer. Without a pause, clients take the CPU time of a worker that boots.
   */
  constructor(asks: readonly (() => Promise<boolean>)[], pauseMs: number) {
    this.#clients = asks.map((ask) => this.#run(ask, pauseMs));
  }

  /** Resolves once `holds`; it is looked at after each answer. */
  until(what: string, holds: () => boolean): Promise<void> {
    return this.#waiters.until({
      holds,
      late: () => `no ${what}: ${JSON.stringify(this)}`,
    });
  }

  /** Resolves once `count` more were answered well. */
  serves(count: number): Promise<void> {
    const goal = this.served + count;
    return this.until(`${count} more answers`, () => this.served >= goal);
  }

  /** Resolves once every request that is under way now has been answered or lost. */
  async turnOver(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  async stop(): Promise<unknown> {
    this.#stopped = true;
    return Promise.all(this.#clients);
  }

  async #run(ask: () => Promise<boolean>, pauseMs: number): Promise<void> {
    await Promise.resolve(); // the fields of a class that extends this one are set now
    while (!this.#stopped) {
      const asked = ask();
      this.#underWay.add(asked);
      if (await asked) this.served += 1;
      this.#underWay.delete(asked);
      this.#waiters.look();
      if (pauseMs > 0) await delay(pauseMs);
    }
  }
}
