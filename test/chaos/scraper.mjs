const EVERY_MS = 1_000;

/** Reads /metrics of the admin listener every second, as Prometheus does. */
export class Scraper {
  scrapes = 0;
  /** Counters that were lower than before, `{ at, series, from, to }`. */
  falls = [];
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
    const page = await this.#cluster.admin('/metrics').catch(() => undefined);
    if (page?.status === 200) {
      const counters = readCounters(page.body);
      const at = Date.now();
      this.falls.push(...fallen(this.#last, counters).map((fall) => ({ at, ...fall })));
      this.#last = counters;
      this.scrapes += 1;
    }
    this.#running = undefined;
  }
}

const SUFFIXES = {
  counter: [''],
  histogram: ['_bucket', '_count', '_sum'],
  summary: ['_count', '_sum'],
};

/**
 * Samples of a page in the text format that must never fall.
 *
 * @param {string} page
 * @returns {Map<string, number>}
 */
export function readCounters(page) {
  const counters = new Map();
  const monotonic = new Set();
  for (const line of page.split('\n')) {
    const [, name, type] = /^# TYPE (\S+) (\S+)$/.exec(line) ?? [];
    for (const suffix of SUFFIXES[type] ?? []) monotonic.add(name + suffix);
    const sample = /^([a-zA-Z_:][\w:]*)(\{.*\})? (\S+)$/.exec(line);
    if (sample && monotonic.has(sample[1])) {
      counters.set(sample[1] + (sample[2] ?? ''), Number(sample[3]));
    }
  }
  return counters;
}

/**
 * @param {Map<string, number>} before
 * @param {Map<string, number>} after
 * @returns counters that have decreased or disappeared.
 */
export function fallen(before, after) {
  return [...before]
    .filter(([series, value]) => !(after.get(series) >= value))
    .map(([series, from]) => ({ series, from, to: after.get(series) ?? 'gone' }));
}
