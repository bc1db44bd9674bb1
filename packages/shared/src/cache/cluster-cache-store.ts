import { type ClusterCacheOptions, SharedCache, ttlOf } from './shared-cache.js';

/**
 * A store for `CacheModule.register({ stores: [clusterCache({ maxBytes })] })`. All workers have
 * the same values: once `set()`, `delete()` or `clear()` has resolved, no worker reads an older
 * value. These methods reject if the hub does not confirm the change. A `Keyv` without
 * `throwOnErrors` hides the error.
 *
 * @throws ClusterConfigurationError
 */
export function clusterCache(options?: ClusterCacheOptions): ClusterCacheStore {
  return new ClusterCacheStore(options);
}

/**
 * A store for Keyv 5 and 6. cache-manager wraps it in a `Keyv` of its own version. Keyv 6 lets a
 * store handle namespaces only if the store has all of these methods.
 */
export class ClusterCacheStore {
  /** The namespace of the keys. Keyv sets it. */
  namespace: string | undefined = undefined;
  readonly #cache: SharedCache;

  readonly opts: Readonly<ClusterCacheOptions>;

  constructor(options: ClusterCacheOptions | undefined) {
    this.#cache = new SharedCache(options, 'default');
    // Keyv 5 can iterate only over stores of a known dialect. Not enumerable: copies of `opts` must lack it.
    this.opts = Object.defineProperty({ ...options }, 'dialect', { value: 'redis' });
  }

  async get<Value>(key: string): Promise<Value | undefined> {
    return (await this.#cache.get(this.#prefix + key)) as Value | undefined;
  }

  /** @param ttl in ms. */
  async set(key: string, value: unknown, ttl?: number): Promise<boolean> {
    const ttlMs = ttlOf({ ttlMs: ttl ?? undefined }, 'set()');
    return this.#cache.set(this.#prefix + key, value, ttlMs);
  }

  async setMany(
    entries: readonly { key: string; value: unknown; ttl?: number }[],
  ): Promise<boolean[]> {
    return Promise.all(entries.map(({ key, value, ttl }) => this.set(key, value, ttl)));
  }

  async has(key: string): Promise<boolean> {
    return (await this.get(key)) !== undefined;
  }

  async hasMany(keys: readonly string[]): Promise<boolean[]> {
    return Promise.all(keys.map((key) => this.has(key)));
  }

  async delete(key: string): Promise<boolean> {
    return this.#cache.delete(this.#prefix + key);
  }

  /** @returns whether all keys existed. Keyv 6 uses this one result for each key. */
  async deleteMany(keys: readonly string[]): Promise<boolean> {
    return (await Promise.all(keys.map((key) => this.delete(key)))).every(Boolean);
  }

  /** Removes the values of the namespace. Without a namespace, removes all values. */
  async clear(): Promise<void> {
    return this.#cache.clear(this.#prefix || undefined);
  }

  /** Keys and values of the namespace, unordered. Without a namespace, all keys and values. */
  async *iterator(): AsyncGenerator<[key: string, value: unknown]> {
    const prefix = this.#prefix;
    for await (const [key, value] of this.#cache.entries(prefix)) {
      yield [key.slice(prefix.length), value];
    }
  }

  /** Does nothing, because the store emits no events. */
  on(_event: string, _listener: (...args: never[]) => void): this {
    return this;
  }

  /** Ends with NUL, because the name of one namespace may begin with the name of another. */
  get #prefix(): string {
    return this.namespace ? `${this.namespace}\0` : '';
  }
}
