import { BLOCK_COST_BYTES, Blocks } from '../storage/blocks.js';
import {
  EntryTable,
  EXPIRES_AT,
  FORM_BYTES,
  HEAD_BYTES,
  KEY_BYTES,
  NEWER,
  OLDER,
  VALUE_BYTES,
} from './entry-table.js';

/** A value, and the form from which the client decodes it. */
export interface Entry {
  readonly form: string;
  readonly value: Buffer;
}

export interface KeysPart {
  readonly keys: string[];
  /** The start of the next part; 0 after the last part. */
  readonly next: number;
}

/** The memory counted for a block: the block, and at most two buckets. */
const COST_BYTES = BLOCK_COST_BYTES + 8;

/** Maximum number of buckets. A cache with a huge maximum would otherwise waste memory on buckets. */
const MAX_BUCKETS = 2 ** 22;

/** How many entries one sweep checks. */
const SWEPT = 1_000;

/** The maximum size of one part of a cache. The hub handles such a part in about 2 ms. */
const PART_BUCKETS = 4_096;
const PART_BYTES = 1024 * 1024;

/**
 * Values by key, up to a maximum in bytes. Beyond it, the value that was unused for the longest
 * time is evicted. Callers pass the current time.
 *
 * With a maximum of 128 MiB, these blocks take 0.9 to 1.2 times the maximum. The package lru-cache
 * 11, with a `Buffer` per value, took 2.2 to 3.9 times for values of 100 B and 1 KB, and 1.1 to 1.3
 * times for 64 KB (Node 20 and 24, values replaced for 60 s). In that test, evicted buffers were
 * freed and 400 B were counted per entry.
 */
export class LruCache {
  readonly #blocks = new Blocks();
  readonly #table = new EntryTable(this.#blocks);
  #maxBlocks = 0;
  #oldest = 0;
  #newest = 0;
  #size = 0;
  /** The entry at which the next sweep begins. */
  #sweepFrom = 0;

  constructor(maxBytes: number) {
    this.resize(maxBytes);
  }

  get bytes(): number {
    return this.#blocks.used * COST_BYTES;
  }

  get size(): number {
    return this.#size;
  }

  /** Does not count as a use of the value. */
  has(key: string, now: number): boolean {
    const entry = this.#table.find(bytesOf(key));
    return entry !== 0 && this.#isAlive(entry, now);
  }

  /** @returns an entry whose value may be a view. The view is valid until the cache changes. */
  get(key: string, now: number): Entry | undefined {
    const entry = this.#table.find(bytesOf(key));
    if (entry === 0) return undefined;
    if (!this.#isAlive(entry, now)) {
      this.#remove(entry);
      return undefined;
    }
    this.#unlink(entry);
    this.#append(entry);
    const formAt = HEAD_BYTES + this.#blocks.word(entry, KEY_BYTES);
    const formBytes = this.#blocks.word(entry, FORM_BYTES);
    const valueBytes = this.#blocks.word(entry, VALUE_BYTES);
    return {
      form: this.#blocks.read(entry, formAt, formBytes).toString(),
      value: this.#blocks.read(entry, formAt + formBytes, valueBytes),
    };
  }

  /** @returns the number of evicted values. A value larger than the cache is not kept. */
  set(key: string, { form, value }: Entry, ttlMs: number | null, now: number): number {
    const keyBytes = bytesOf(key);
    const old = this.#table.find(keyBytes);
    if (old !== 0) this.#remove(old);
    const formBytes = Buffer.from(form);
    const formAt = HEAD_BYTES + keyBytes.length;
    const count = Blocks.countFor(formAt + formBytes.length + value.length);
    const expiresAt = ttlMs === null ? Infinity : now + ttlMs;
    if (count > this.#maxBlocks || expiresAt <= now) return 0;
    const evicted = this.#makeRoom(count);
    const entry = this.#blocks.take(count);
    this.#table.add(entry, keyBytes);
    this.#blocks.setWord(entry, FORM_BYTES, formBytes.length);
    this.#blocks.setWord(entry, VALUE_BYTES, value.length);
    this.#blocks.setDouble(entry, EXPIRES_AT, expiresAt);
    this.#blocks.write(entry, formAt, formBytes);
    this.#blocks.write(entry, formAt + formBytes.length, value);
    this.#append(entry);
    this.#size += 1;
    return evicted;
  }

  /** @returns whether the cache had the value. */
  delete(key: string, now: number): boolean {
    const entry = this.#table.find(bytesOf(key));
    if (entry === 0) return false;
    const wasAlive = this.#isAlive(entry, now);
    this.#remove(entry);
    return wasAlive;
  }

  clear(): void {
    this.#blocks.clear();
    this.#table.clear();
    this.#oldest = this.#newest = this.#sweepFrom = this.#size = 0;
  }

  /**
   * Removes the values with keys that begin with `prefix`, in one part of the cache.
   *
   * @param from the start of the part: 0, then the result of the previous call.
   * @returns the start of the next part; 0 after the last part.
   */
  clearPrefix(prefix: string, from: number): number {
    const begin = bytesOf(prefix);
    const to = Math.min(from + PART_BUCKETS, this.#table.length);
    for (let bucket = from; bucket < to; bucket += 1) {
      for (const entry of this.#table.entriesIn(bucket, begin)) this.#remove(entry);
    }
    return to % this.#table.length;
  }

  /**
   * Keys in one part of the cache. If the cache grows between two calls, both may return the same key.
   *
   * @param from as for {@link clearPrefix}.
   */
  keys(prefix: string, from: number, now: number): KeysPart {
    const begin = bytesOf(prefix);
    const to = Math.min(from + PART_BUCKETS, this.#table.length);
    const keys: string[] = [];
    let bucket = from;
    for (let bytes = 0; bucket < to && bytes < PART_BYTES; bucket += 1) {
      for (const entry of this.#table.entriesIn(bucket, begin)) {
        if (!this.#isAlive(entry, now)) continue;
        const key = this.#table.keyOf(entry);
        bytes += key.length;
        keys.push(key.toString('utf16le'));
      }
    }
    return { keys, next: bucket % this.#table.length };
  }

  /** @returns the number of evicted values. */
  resize(maxBytes: number): number {
    this.#maxBlocks = Math.floor(maxBytes / COST_BYTES);
    const buckets = Math.min(2 ** Math.ceil(Math.log2(this.#maxBlocks + 1)), MAX_BUCKETS);
    // The table never shrinks: during a reload, two releases may set two maximums in turn.
    if (buckets > this.#table.length) this.#table.grow(buckets, this.#entries());
    return this.#makeRoom(0);
  }

  /**
   * Removes expired values from a part of the cache, and releases memory that was unused for a
   * while. To be called each second.
   */
  sweep(now: number): void {
    let left = SWEPT;
    for (const entry of this.#entries(this.#sweepFrom || this.#oldest)) {
      this.#sweepFrom = entry;
      if (left === 0) break;
      left -= 1;
      if (!this.#isAlive(entry, now)) this.#remove(entry);
    }
    if (left > 0) this.#sweepFrom = 0;
    this.#blocks.trim();
  }

  /** The entries from `from` to the newest. The caller may remove the entry that was yielded last. */
  *#entries(from = this.#oldest): Generator<number> {
    for (let entry = from; entry !== 0;) {
      const newer = this.#blocks.word(entry, NEWER);
      yield entry;
      entry = newer;
    }
  }

  /** Evicts values until `count` blocks fit. @returns the number of evicted values. */
  #makeRoom(count: number): number {
    let evicted = 0;
    for (; this.#blocks.used + count > this.#maxBlocks; evicted += 1) this.#remove(this.#oldest);
    return evicted;
  }

  #remove(entry: number): void {
    this.#table.remove(entry);
    this.#unlink(entry);
    this.#blocks.free(entry);
    this.#size -= 1;
  }

  /** Makes the entry the newest. */
  #append(entry: number): void {
    this.#blocks.setWord(entry, OLDER, this.#newest);
    this.#blocks.setWord(entry, NEWER, 0);
    if (this.#newest === 0) this.#oldest = entry;
    else this.#blocks.setWord(this.#newest, NEWER, entry);
    this.#newest = entry;
  }

  #unlink(entry: number): void {
    const older = this.#blocks.word(entry, OLDER);
    const newer = this.#blocks.word(entry, NEWER);
    if (older === 0) this.#oldest = newer;
    else this.#blocks.setWord(older, NEWER, newer);
    if (newer === 0) this.#newest = older;
    else this.#blocks.setWord(newer, OLDER, older);
    if (this.#sweepFrom === entry) this.#sweepFrom = newer;
  }

  #isAlive(entry: number, now: number): boolean {
    return this.#blocks.double(entry, EXPIRES_AT) > now;
  }
}

/** UTF-16, because UTF-8 has the same bytes for all lone surrogates. */
function bytesOf(key: string): Buffer {
  return Buffer.from(key, 'utf16le');
}
