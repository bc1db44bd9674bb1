import type { CacheStats } from '../protocol.js';
import { type Entry, LruCache } from './lru-cache.js';

/** Caches of different names. Each is bounded: so they are, all together. */
const MAX_CACHES = 64;

interface Place {
  readonly cache: string;
  readonly key: string;
}

/** The caches of the cluster, by name. */
export class CacheShelf {
  readonly #caches = new Map<string, { maxBytes: number; readonly entries: LruCache }>();

  has(at: Place, now: number): boolean {
    return this.#caches.get(at.cache)?.entries.has(at.key, now) ?? false;
  }

  get(at: Place, now: number): Entry | undefined {
    return this.#caches.get(at.cache)?.entries.get(at.key, now);
  }

  /** @returns how many values were removed for it; `undefined` where there is no room for another cache. */
  set(
    at: Place & { form: string; ttlMs: number | null; maxBytes: number },
    value: Buffer,
    now: number,
  ): number | undefined {
    let cache = this.#caches.get(at.cache);
    if (cache === undefined) {
      if (this.#caches.size >= MAX_CACHES) return undefined;
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

  delete(at: Place, now: number): boolean {
    return this.#caches.get(at.cache)?.entries.delete(at.key, now) ?? false;
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
