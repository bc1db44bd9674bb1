import type { Redis } from 'ioredis';
import { setTimeout as delay } from 'node:timers/promises';

/** Longest read that blocks, in ms. */
const BLOCK_MS = 5_000;

/** An entry may be as large as a payload. */
const ENTRIES_A_READ = 32;

const PAUSE_MS = 200;

/** Trims after so many entries: one command for each call would be too many. */
const TRIM_AFTER = 16;

/**
 * Reads all its streams with one blocking command, on a connection of its own. If the connection
 * breaks, it reads again from the last entry that it has handled.
 */
export class StreamReader {
  /** The last entry that was read, by key. */
  readonly #last: Map<string, string>;
  #closed = false;
  #untrimmed = 0;

  constructor(
    private readonly redis: Redis,
    /** The handlers, by key. None may throw. */
    private readonly streams: ReadonlyMap<string, (text: string) => void>,
    /** The key of the stream that nobody else reads: its read entries are removed. */
    private readonly own: string,
  ) {
    this.#last = new Map([...streams.keys()].map((key) => [key, '0-0']));
  }

  /** Until {@link close}. */
  async run(): Promise<void> {
    while (!this.#closed) {
      try {
        await this.#read();
      } catch {
        // Redis is away, and the connection comes back by itself. Or a key holds another type.
        await delay(PAUSE_MS, undefined, { ref: false });
      }
    }
  }

  close(): void {
    this.#closed = true;
  }

  async #read(): Promise<void> {
    const from = [...this.#last.keys(), ...this.#last.values()];
    const limits = ['COUNT', ENTRIES_A_READ, 'BLOCK', BLOCK_MS] as const;
    const found = await this.redis.xread(...limits, 'STREAMS', ...from);
    for (const [key, entries] of found ?? []) {
      for (const [, [, text = '']] of entries) this.streams.get(key)!(text);
      this.#last.set(key, entries.at(-1)![0]);
      if (key === this.own) this.#untrimmed += entries.length;
    }
    if (this.#untrimmed < TRIM_AFTER) return;
    this.#untrimmed = 0;
    // Does not wait: the command goes out with the next read.
    this.redis.xtrim(this.own, 'MINID', this.#last.get(this.own)!).catch(() => {});
  }
}
