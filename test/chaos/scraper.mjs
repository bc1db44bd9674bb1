import { fallen, readCounters } from './counters.mjs';

const EVERY_MS = 1_000;

/** Reads /metrics of the admin listener every second, as Prometheus does. */
export class Scraper {
  scrapes = 0;
  /** Counters that were lower than before, `{ at, series, from, to }`. */
  falls = [];
  /** Scrapes without an answer, `{ at, why }`. */
  missed = [];
  #cluster;
  #last = new Map();
  #timer;
  #running;

  constructor(cluster) {
    this.#cluster = cluster;
    this.#timer = setInterval(() => (this.#running ??= this.#scrape()), EVERY_MS);
  }

  async stop() {
    clearInterval(this.#timer);
    await this.#running;
  }

  async #scrape() {
    const at = Date.now();
    try {
      const { status, body } = await this.#cluster.admin('/metrics');
      if (status !== 200) throw new Error(`status ${status}`);
      const counters = readCounters(body);
      this.falls.push(...fallen(this.#last, counters).map((fall) => ({ at, ...fall })));
      this.#last = counters;
      this.scrapes += 1;
    } catch (error) {
      // It need not be there before it has been there once.
      if (this.scrapes > 0) this.missed.push({ at, why: error.message });
    }
    this.#running = undefined;
  }
}
