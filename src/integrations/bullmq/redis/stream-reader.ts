import type { Redis } from 'ioredis';
import { setTimeout as delay } from 'node:timers/promises';

/** The maximum time that a read waits for entries, in ms. */
const BLOCK_MS = 5_000;

/** The maximum number of entries for each read. Small, because an entry may be as large as a payload. */
const ENTRIES_A_READ = 32;

const PAUSE_MS = 200;

/** Read entries are removed in batches of this size, because a command for each entry costs too much. */
const TRIM_AFTER = 16;

/**
 * Reads several streams with one blocking command, on its own connection. If the connection breaks,
 * continues after the last handled entries.
 */
export class StreamReader {
  /** The id of the last handled entry of each stream, by the stream's key. */
  readonly #last: Map<string, string>;
  #closed = false;
  #untrimmed = 0;

  constructor(
    private readonly redis: Redis,
    /** The handler of each stream, by the stream's key. Handlers must not throw. */
    private readonly streams: ReadonlyMap<string, (text: string) => void>,
    /** The key of the stream that only this process reads. Its read entries are removed. */
    private readonly own: string,
  ) {
    this.#last = new Map([...streams.keys()].map((key) => [key, '0-0']));
  }

  /** Reads until {@link close} is called. */
  async run(): Promise<void> {
    while (!this.#closed) {
      try {
        await this.#read();
      } catch {
        // Ignored: either Redis is away and the connection comes back by itself, or a key is not a stream.
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
    // Not awaited, because the command is sent with the next read.
    this.redis.xtrim(this.own, 'MINID', this.#last.get(this.own)!).catch(() => {});
  }
}
