import type { Blocks } from '../storage/blocks.js';

/** Indexes of 32-bit words at the start of an entry. Its key, its form and its value follow. */
export const OLDER = 0;
export const NEWER = 1;
const NEXT_IN_BUCKET = 2;
const HASH = 3;
export const KEY_BYTES = 4;
export const FORM_BYTES = 5;
export const VALUE_BYTES = 6;
export const EXPIRES_AT = 8;
export const HEAD_BYTES = 40;

/** Finds the entries of a cache by their keys. An entry is the number of its first block. */
export class EntryTable {
  #buckets = new Int32Array(1);
  /** Random numbers for the hash, so that nobody can choose many keys with the same hash. */
  readonly #ofByte = globalThis.crypto.getRandomValues(new Int32Array(256));

  constructor(private readonly blocks: Blocks) {}

  /** The number of buckets. */
  get length(): number {
    return this.#buckets.length;
  }

  /** @returns the entry with this key; 0 if there is none. */
  find(key: Buffer): number {
    const hash = this.#hash(key);
    let entry = this.#buckets[this.#bucketOf(hash)]!;
    while (entry !== 0 && !(this.blocks.word(entry, HASH) === hash && this.#hasKey(entry, key))) {
      entry = this.blocks.word(entry, NEXT_IN_BUCKET);
    }
    return entry;
  }

  /** Writes the key into the entry, and adds the entry to its bucket. */
  add(entry: number, key: Buffer): void {
    this.blocks.setWord(entry, HASH, this.#hash(key));
    this.blocks.setWord(entry, KEY_BYTES, key.length);
    this.blocks.write(entry, HEAD_BYTES, key);
    this.#addToBucket(entry);
  }

  remove(entry: number): void {
    const bucket = this.#bucketOf(this.blocks.word(entry, HASH));
    const next = this.blocks.word(entry, NEXT_IN_BUCKET);
    let before = this.#buckets[bucket]!;
    if (before === entry) {
      this.#buckets[bucket] = next;
      return;
    }
    for (let after = before; after !== entry; after = this.blocks.word(after, NEXT_IN_BUCKET)) {
      before = after;
    }
    this.blocks.setWord(before, NEXT_IN_BUCKET, next);
  }

  /** The entries of a bucket, only with keys that begin with `begin`. */
  entriesIn(bucket: number, begin: Buffer): number[] {
    const entries: number[] = [];
    for (let entry = this.#buckets[bucket]!; entry !== 0;) {
      if (this.keyOf(entry).subarray(0, begin.length).equals(begin)) entries.push(entry);
      entry = this.blocks.word(entry, NEXT_IN_BUCKET);
    }
    return entries;
  }

  keyOf(entry: number): Buffer {
    return this.blocks.read(entry, HEAD_BYTES, this.blocks.word(entry, KEY_BYTES));
  }

  clear(): void {
    this.#buckets.fill(0);
  }

  /** @param length the number of buckets, a power of two. */
  grow(length: number, entries: Iterable<number>): void {
    this.#buckets = new Int32Array(length);
    for (const entry of entries) this.#addToBucket(entry);
  }

  #hasKey(entry: number, key: Buffer): boolean {
    return this.blocks.word(entry, KEY_BYTES) === key.length && this.keyOf(entry).equals(key);
  }

  #addToBucket(entry: number): void {
    const bucket = this.#bucketOf(this.blocks.word(entry, HASH));
    this.blocks.setWord(entry, NEXT_IN_BUCKET, this.#buckets[bucket]!);
    this.#buckets[bucket] = entry;
  }

  #bucketOf(hash: number): number {
    return hash & (this.#buckets.length - 1);
  }

  #hash(key: Buffer): number {
    let hash = key.length;
    for (let at = 0; at < key.length; at += 1) {
      hash = Math.imul(hash ^ this.#ofByte[key[at]!]!, 0x9e3779b1);
    }
    hash = Math.imul(hash ^ (hash >>> 15), 0x85ebca6b);
    return hash ^ (hash >>> 13);
  }
}
