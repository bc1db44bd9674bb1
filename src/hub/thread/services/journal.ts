import { BLOCK_COST_BYTES, Blocks } from './blocks.js';

/** What is kept of a message, for those who were away. */
export interface Kept {
  readonly number: number;
  readonly body: Buffer;
}

/** For whom a message is: everybody, unless it names tags; nobody who has one of `except`. */
export interface Audience {
  readonly tags: readonly string[];
  readonly except: readonly string[];
}

interface Entry extends Audience {
  readonly channel: string;
  readonly number: number;
  /** The first of its blocks; 0 where it is empty. */
  readonly body: number;
  readonly bodyBytes: number;
  readonly bytes: number;
  readonly until: number;
}

/** Of an entry beside its body and its tags. */
const ENTRY_BYTES = 256;

/** Channels of which is known what they have lost. */
const MAX_LOSSES = 10_000;

/** One who was away for more begins anew. */
const MAX_MISSED_BYTES = 8 * 1024 * 1024;

/** The last messages of all channels in their order, bounded in bytes and time. Without a clock. */
export class Journal {
  /** Bodies: V8 would let several times of what is kept pile up before it collects. */
  readonly #bodies = new Blocks();
  #entries: Entry[] = [];
  /** Entries before it are gone. */
  #first = 0;
  #bytes = 0;
  #lastNumber = 0;
  readonly #losses = new Map<string, number>();
  /** No channel remembers anything before it. */
  #floor = 0;

  get bytes(): number {
    return this.#bytes;
  }

  /** @returns its number. */
  add(
    channel: string,
    { tags, except }: Audience,
    body: Buffer,
    { forMs, maxBytes }: { readonly forMs: number; readonly maxBytes: number },
    now: number,
  ): number {
    const number = (this.#lastNumber += 1);
    const named = [...tags, ...except].reduce((sum, { length }) => sum + length + 16, 0);
    const blocks = Blocks.countFor(body.length);
    const bytes = ENTRY_BYTES + named + blocks * BLOCK_COST_BYTES;
    const until = now + forMs;
    const first = blocks === 0 ? 0 : this.#bodies.take(blocks);
    if (first !== 0) this.#bodies.write(first, 0, body);
    const kept = { body: first, bodyBytes: body.length };
    this.#entries.push({ channel, number, tags, except, ...kept, bytes, until });
    this.#bytes += bytes;
    while (this.#bytes > maxBytes) this.#drop();
    return number;
  }

  /**
   * The messages after that number for one who has those tags.
   *
   * @returns `undefined` where some of them may be gone, or are too many.
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
      kept.push({ number: entry.number, body: this.#bodyOf(entry) });
    }
    return kept;
  }

  /** To be called each second. Forgets what is too old. */
  sweep(now: number): void {
    while (this.#first < this.#entries.length && this.#entries[this.#first]!.until <= now) {
      this.#drop();
    }
    this.#bodies.trim();
  }

  #bodyOf({ body, bodyBytes }: Entry): Buffer {
    return body === 0 ? Buffer.alloc(0) : Buffer.from(this.#bodies.read(body, 0, bodyBytes));
  }

  #indexAfter(number: number): number {
    const first = this.#entries[this.#first]?.number ?? Infinity;
    return this.#first + Math.max(0, number + 1 - first); // numbers have no gaps
  }

  #drop(): void {
    const { channel, number, body, bytes } = this.#entries[this.#first]!;
    if (body !== 0) this.#bodies.free(body);
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
  return (
    (tags.length === 0 || tags.some((tag) => own.has(tag))) && !except.some((tag) => own.has(tag))
  );
}
