import { BLOCK_COST_BYTES, Blocks } from '../storage/blocks.js';

/** A kept message. */
interface Kept {
  readonly number: number;
  readonly body: Buffer;
}

/** A message is for clients with a tag in `tags` (if empty, for all clients) and without a tag in `except`. */
interface Audience {
  readonly tags: readonly string[];
  readonly except: readonly string[];
}

interface Keep extends Audience {
  readonly forMs: number;
  readonly maxBytes: number;
}

interface Entry extends Audience {
  readonly channel: string;
  readonly number: number;
  /** The first block of the body; 0 if the body is empty. */
  readonly firstBlock: number;
  readonly bodyBytes: number;
  readonly bytes: number;
  readonly until: number;
}

/** The memory that is counted for an entry, without its body and tags. */
const ENTRY_BYTES = 256;

/** Maximum number of channels in `#losses`. Beyond it, `#floor` replaces the numbers of all channels. */
const MAX_LOSSES = 10_000;

/** Maximum number of bytes that a client may have missed. Beyond it, the client starts a new session. */
const MAX_MISSED_BYTES = 8 * 1024 * 1024;

/** The last messages of all channels in order, limited in bytes and age. Callers pass the time. */
export class Journal {
  /** The bodies. {@link Blocks} says why they are not kept as buffers. */
  readonly #bodies = new Blocks();
  #entries: Entry[] = [];
  /** The index of the first entry that was not dropped. */
  #first = 0;
  #bytes = 0;
  #lastNumber = 0;
  /** The number of the last dropped message of each channel. */
  readonly #losses = new Map<string, number>();
  /** Messages up to this number may have been dropped in any channel. */
  #floor = 0;

  /** @returns the number of the message. */
  add(channel: string, { tags, except, forMs, maxBytes }: Keep, body: Buffer, now: number): number {
    const number = (this.#lastNumber += 1);
    const tagBytes = [...tags, ...except].reduce((sum, { length }) => sum + length + 16, 0);
    const blocks = Blocks.countFor(body.length);
    const bytes = ENTRY_BYTES + tagBytes + blocks * BLOCK_COST_BYTES;
    const firstBlock = this.#bodies.take(blocks);
    this.#bodies.write(firstBlock, 0, body);
    const kept = { firstBlock, bodyBytes: body.length, bytes, until: now + forMs };
    this.#entries.push({ channel, number, tags, except, ...kept });
    this.#bytes += bytes;
    while (this.#bytes > maxBytes) this.#drop();
    return number;
  }

  /**
   * The messages after `number` for a client with `tags`.
   *
   * @returns `undefined` if some messages were dropped, or exceed {@link MAX_MISSED_BYTES}.
   */
  after(channel: string, number: number, tags: readonly string[]): Kept[] | undefined {
    if (number > this.#lastNumber) return undefined;
    if (number < Math.max(this.#floor, this.#losses.get(channel) ?? 0)) return undefined;
    const own = new Set(tags);
    const kept: Kept[] = [];
    let bytes = 0;
    for (let at = this.#indexAfter(number); at < this.#entries.length; at += 1) {
      const entry = this.#entries[at]!;
      if (entry.channel !== channel || !isFor(entry, own)) continue;
      bytes += entry.bodyBytes;
      if (bytes > MAX_MISSED_BYTES) return undefined;
      const body = Buffer.from(this.#bodies.read(entry.firstBlock, 0, entry.bodyBytes));
      kept.push({ number: entry.number, body });
    }
    return kept;
  }

  /** Drops messages that are too old. To be called each second. */
  sweep(now: number): void {
    while (this.#first < this.#entries.length && this.#entries[this.#first]!.until <= now) {
      this.#drop();
    }
    this.#bodies.trim();
  }

  #indexAfter(number: number): number {
    const first = this.#entries[this.#first]?.number ?? Infinity;
    return this.#first + Math.max(0, number + 1 - first); // numbers have no gaps
  }

  #drop(): void {
    const { channel, number, firstBlock, bytes } = this.#entries[this.#first]!;
    this.#bodies.free(firstBlock);
    this.#entries[this.#first] = undefined as never;
    this.#first += 1;
    this.#bytes -= bytes;
    if (this.#losses.size >= MAX_LOSSES) {
      this.#losses.clear();
      this.#floor = number;
    }
    this.#losses.set(channel, number);
    if (this.#first < 1_024 || this.#first < this.#entries.length / 2) return;
    this.#entries = this.#entries.slice(this.#first);
    this.#first = 0;
  }
}

function isFor({ tags, except }: Audience, own: ReadonlySet<string>): boolean {
  const isIncluded = tags.length === 0 || tags.some((tag) => own.has(tag));
  return isIncluded && !except.some((tag) => own.has(tag));
}
