import type { CacheStats } from '../../wire/protocol.js';
import { type Entry, LruCache } from './lru-cache.js';

const MAX_CACHES = 64;

interface CacheKey {
  readonly cache: string;
  readonly key: string;
}

/** The caches of the cluster, by name. */
export class Caches {
  readonly #caches = new Map<string, { maxBytes: number; readonly entries: LruCache }>();

  /** @param maxBytes the limit for all caches together. */
  constructor(private readonly maxBytes = Infinity) {}

  has({ cache, key }: CacheKey, now: number): boolean {
    return this.#caches.get(cache)?.entries.has(key, now) ?? false;
  }

  get({ cache, key }: CacheKey, now: number): Entry | undefined {
    return this.#caches.get(cache)?.entries.get(key, now);
  }

  /** @returns the number of values removed for it; a text if the cache is refused, which says why. */
  set(
    at: CacheKey & { form: string; ttlMs: number | null; maxBytes: number },
    value: Buffer,
    now: number,
  ): number | string {
    let cache = this.#caches.get(at.cache);
    if (cache?.maxBytes !== at.maxBytes) {
      const problem = this.#problemOf(at);
      if (problem !== undefined) return problem;
    }
    if (cache === undefined) {
      cache = { maxBytes: at.maxBytes, entries: new LruCache(at.maxBytes) };
      this.#caches.set(at.cache, cache);
    }
    let evicted = 0;
    if (cache.maxBytes !== at.maxBytes) {
      cache.maxBytes = at.maxBytes; // a reload has brought another bound
      evicted = cache.entries.resize(at.maxBytes);
    }
    return evicted + cache.entries.set(at.key, { form: at.form, value }, at.ttlMs, now);
  }

  /** @returns why that cache is refused. */
  #problemOf({ cache, maxBytes }: { readonly cache: string; readonly maxBytes: number }) {
    const others = [...this.#caches].filter(([name]) => name !== cache);
    if (others.length >= MAX_CACHES) return 'there are too many caches; give several the same name';
    const left = others.reduce((sum, [, other]) => sum - other.maxBytes, this.maxBytes);
    if (maxBytes <= left) return undefined;
    return `its maxBytes is ${maxBytes}, and of the memory of ${this.maxBytes} bytes the other caches leave ${Math.max(0, left)}; give all caches together less`;
  }

  delete({ cache, key }: CacheKey, now: number): boolean {
    return this.#caches.get(cache)?.entries.delete(key, now) ?? false;
  }

  clear(cache: string): void {
    this.#caches.get(cache)?.entries.clear();
  }

  /** See {@link LruCache.clearPrefix}. */
  clearPrefix(cache: string, prefix: string, from: number): number {
    return this.#caches.get(cache)?.entries.clearPrefix(prefix, from) ?? 0;
  }

  /** See {@link LruCache.keys}. */
  keys({ cache, prefix, from }: { cache: string; prefix: string; from: number }, now: number) {
    return this.#caches.get(cache)?.entries.keys(prefix, from, now) ?? { keys: [], next: 0 };
  }

  sweep(now: number): void {
    for (const { entries } of this.#caches.values()) entries.sweep(now);
  }

  stats(): CacheStats[] {
    return [...this.#caches].map(([cache, { entries }]) => ({
      cache,
      bytes: entries.bytes,
      entries: entries.size,
    }));
  }
}
