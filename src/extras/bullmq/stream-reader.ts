import type { Redis } from 'ioredis';
import { setTimeout as delay } from 'node:timers/promises';
import { TIMED_OUT } from './redis-link.js';

/** Longest read that blocks, in ms. */
export const BLOCK_MS = 5_000;

/** An entry may be as large as a payload. */
const ENTRIES_A_READ = 32;

const PAUSE_MS = 200;

/** Entries that are read remain, as many as this: to trim after each would be a command a call. */
const TRIM_AFTER = 16;

export interface ReadStream {
  readonly key: string;
  /** Nobody else reads it: what was read is removed. */
  readonly own: boolean;
  /** Must not throw. */
  readonly onEntry: (text: string) => void;
}

/**
 * Reads streams, all of them with one command that blocks, on a connection of
 * its own. A stream keeps an entry until it is read: one that was on its way
 * when a connection broke comes again.
 */
export class StreamReader {
  #closed = false;
  #untrimmed = 0;

  constructor(
    private readonly redis: Redis,
    private readonly streams: readonly ReadStream[],
  ) {}

  /** Until {@link close}. */
  async run(): Promise<void> {
    const last = new Map(this.streams.map(({ key }) => [key, '0-0']));
    while (!this.#closed) {
      try {
        await this.#read(last);
      } catch (error) {
        // Redis is away, which the connection sees to; or what is at a key is no stream; or a
        // connection that looks well has been dead for longer than the read blocks.
        if ((error as Error).message === TIMED_OUT && this.redis.status === 'ready') {
          this.redis.disconnect(true);
        }
        await delay(PAUSE_MS, undefined, { ref: false });
      }
    }
  }

  close(): void {
    this.#closed = true;
  }

  async #read(last: Map<string, string>): Promise<void> {
    const found = await this.redis.xread(
      'COUNT',
      ENTRIES_A_READ,
      'BLOCK',
      BLOCK_MS,
      'STREAMS',
      ...last.keys(),
      ...last.values(),
    );
    for (const [key, entries] of found ?? []) {
      const stream = this.streams.find((each) => each.key === key);
      for (const [, [, text = '']] of entries) stream?.onEntry(text);
      last.set(key, entries.at(-1)![0]);
      this.#untrimmed += stream?.own ? entries.length : 0;
      if (!stream?.own || this.#untrimmed < TRIM_AFTER) continue;
      this.#untrimmed = 0;
      // Not waited for: it goes out with the next read.
      this.redis.xtrim(key, 'MINID', last.get(key)!).catch(() => {});
    }
  }
}
