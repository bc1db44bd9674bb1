import { BLOCK_COST_BYTES, Blocks } from './blocks.js';
import {
  BESIDE,
  entriesBeginning,
  EXPIRES_AT,
  FORM_BYTES,
  HASH,
  HEAD_BYTES,
  KEY_BYTES,
  keysBeginning,
  type KeysPart,
  NEWER,
  OLDER,
  VALUE_BYTES,
} from './cache-entry.js';
import { bytesOf, type HashedKey, KeyHasher } from './hashed-keys.js';

/** What a cache gives back of a value. */
export interface Entry {
  readonly form: string;
  readonly value: Buffer;
}

/** Of a block, and of the at most two buckets for each. */
const COST_BYTES = BLOCK_COST_BYTES + 8;

/** More would take much memory for a cache that is bounded at more than there is. */
const MAX_BUCKETS = 2 ** 22;

/** Entries that a sweep looks at. */
const SWEPT = 1_000;

/** One part of a cache whose keys are looked at, about 2 ms of the hub's time. */
const PART_BUCKETS = 4_096;

/**
 * Values by key, bounded in bytes. The one that nobody has read or set for the longest time makes
 * room for others. Without a clock. Entries lie in blocks of its own and not in V8's heap.
 */
export class LruCache {
  readonly #blocks = new Blocks();
  readonly #hasher = new KeyHasher();
  #buckets = new Int32Array(1);
  #maxBlocks = 0;
  #oldest = 0;
  #newest = 0;
  #size = 0;
  /** Where the next sweep begins. */
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

  /** Without its becoming the last to make room. */
  has(key: string, now: number): boolean {
    const entry = this.#find(this.#hasher.hash(key));
    return entry !== 0 && this.#blocks.double(entry, EXPIRES_AT) > now;
  }

  /** The value may be a view: it is right until something is set or removed. */
  get(key: string, now: number): Entry | undefined {
    const entry = this.#find(this.#hasher.hash(key));
    if (entry === 0) return undefined;
    if (this.#blocks.double(entry, EXPIRES_AT) <= now) {
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

  /** @returns how many others were removed for it; a value that is too large by itself is not kept. */
  set(key: string, { form, value }: Entry, ttlMs: number | null, now: number): number {
    const hashed = this.#hasher.hash(key);
    const old = this.#find(hashed);
    if (old !== 0) this.#remove(old);
    const keyBytes = bytesOf(hashed);
    const formBytes = Buffer.from(form);
    const formAt = HEAD_BYTES + keyBytes.length;
    const count = Blocks.countFor(formAt + formBytes.length + value.length);
    const expiresAt = ttlMs === null ? Infinity : now + ttlMs;
    if (count > this.#maxBlocks || expiresAt <= now) return 0;
    const evicted = this.#makeRoom(count);
    const entry = this.#blocks.take(count);
    this.#blocks.setWord(entry, HASH, hashed.hash);
    this.#blocks.setWord(entry, KEY_BYTES, keyBytes.length);
    this.#blocks.setWord(entry, FORM_BYTES, formBytes.length);
    this.#blocks.setWord(entry, VALUE_BYTES, value.length);
    this.#blocks.setDouble(entry, EXPIRES_AT, expiresAt);
    this.#blocks.write(entry, HEAD_BYTES, keyBytes);
    this.#blocks.write(entry, formAt, formBytes);
    this.#blocks.write(entry, formAt + formBytes.length, value);
    this.#addToBucket(entry);
    this.#append(entry);
    this.#size += 1;
    return evicted;
  }

  delete(key: string, now: number): boolean {
    const entry = this.#find(this.#hasher.hash(key));
    if (entry === 0) return false;
    const alive = this.#blocks.double(entry, EXPIRES_AT) > now;
    this.#remove(entry);
    return alive;
  }

  clear(): void {
    this.#blocks.clear();
    this.#buckets.fill(0);
    this.#oldest = this.#newest = this.#sweepFrom = this.#size = 0;
  }

  /**
   * Removes the values whose keys begin so, in a part of the cache.
   *
   * @param from where the part begins: 0, then what the part before has returned.
   * @returns 0 after the last part.
   */
  clearPrefix(prefix: string, from: number): number {
    const to = Math.min(from + PART_BUCKETS, this.#buckets.length);
    for (const entry of entriesBeginning(prefix, this.#blocks, this.#buckets.subarray(from, to)))
      this.#remove(entry);
    return to === this.#buckets.length ? 0 : to;
  }

  /**
   * Keys that begin so, in a part of the cache. While it grows between two parts, a key may come twice.
   *
   * @param from as that of {@link clearPrefix}.
   */
  keys(prefix: string, from: number, now: number): KeysPart {
    const to = Math.min(from + PART_BUCKETS, this.#buckets.length);
    const { keys, next } = keysBeginning(prefix, this.#blocks, this.#buckets, { from, to, now });
    return { keys, next: next === this.#buckets.length ? 0 : next };
  }

  /** @returns how many values were removed for it. */
  resize(maxBytes: number): number {
    this.#maxBlocks = Math.floor(maxBytes / COST_BYTES);
    const buckets = Math.min(2 ** Math.ceil(Math.log2(this.#maxBlocks + 1)), MAX_BUCKETS);
    // While workers of two releases have two bounds, it is resized again and again.
    if (buckets > this.#buckets.length) {
      this.#buckets = new Int32Array(buckets);
      for (let entry = this.#oldest; entry !== 0; entry = this.#blocks.word(entry, NEWER)) {
        this.#addToBucket(entry);
      }
    }
    return this.#makeRoom(0);
  }

  /**
   * To be called each second. Removes values whose time is over, a part of the cache at a time, and
   * gives memory back that has not been needed for a while.
   */
  sweep(now: number): void {
    let entry = this.#sweepFrom === 0 ? this.#oldest : this.#sweepFrom;
    for (let left = SWEPT; left > 0 && entry !== 0; left -= 1) {
      const newer = this.#blocks.word(entry, NEWER);
      if (this.#blocks.double(entry, EXPIRES_AT) <= now) this.#remove(entry);
      entry = newer;
    }
    this.#sweepFrom = entry;
    this.#blocks.trim();
  }

  /** @returns how many values were removed for so many blocks. */
  #makeRoom(count: number): number {
    let evicted = 0;
    for (; this.#blocks.used + count > this.#maxBlocks; evicted += 1) this.#remove(this.#oldest);
    return evicted;
  }

  #remove(entry: number): void {
    const bucket = this.#bucketOf(this.#blocks.word(entry, HASH));
    const beside = this.#blocks.word(entry, BESIDE);
    let before = this.#buckets[bucket]!;
    if (before === entry) this.#buckets[bucket] = beside;
    else {
      while (this.#blocks.word(before, BESIDE) !== entry)
        before = this.#blocks.word(before, BESIDE);
      this.#blocks.setWord(before, BESIDE, beside);
    }
    this.#unlink(entry);
    this.#blocks.free(entry);
    this.#size -= 1;
  }

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

  /** @returns 0 where there is none. */
  #find(key: HashedKey): number {
    let entry = this.#buckets[this.#bucketOf(key.hash)]!;
    while (entry !== 0 && !this.#isOf(entry, key)) entry = this.#blocks.word(entry, BESIDE);
    return entry;
  }

  #isOf(entry: number, key: HashedKey): boolean {
    if (this.#blocks.word(entry, HASH) !== key.hash) return false;
    const bytes = bytesOf(key);
    return (
      this.#blocks.word(entry, KEY_BYTES) === bytes.length &&
      this.#blocks.equals(entry, HEAD_BYTES, bytes)
    );
  }

  #addToBucket(entry: number): void {
    const bucket = this.#bucketOf(this.#blocks.word(entry, HASH));
    this.#blocks.setWord(entry, BESIDE, this.#buckets[bucket]!);
    this.#buckets[bucket] = entry;
  }

  #bucketOf(hash: number): number {
    return (hash >>> 1) & (this.#buckets.length - 1);
  }
}
