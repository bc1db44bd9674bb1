import { currentLink } from '../../contract/snapshot/current-link.js';
import { hubOf } from '../client/hub-of-process.js';
import type { ClusterCacheOptions } from './cache-options.js';
import { SharedCache } from './shared-cache.js';

/** A store for Keyv 5 and 6. It is not itself a `Keyv`: cache-manager makes one, of its own version. */
export interface ClusterCacheStore {
  readonly opts: Readonly<ClusterCacheOptions>;
  /** Keyv sets its own namespace here. */
  namespace: string | undefined;
  get<Value>(key: string): Promise<Value | undefined>;
  /** @param ttl in ms. */
  set(key: string, value: unknown, ttl?: number): Promise<boolean>;
  setMany(entries: readonly { key: string; value: unknown; ttl?: number }[]): Promise<boolean[]>;
  has(key: string): Promise<boolean>;
  hasMany(keys: readonly string[]): Promise<boolean[]>;
  delete(key: string): Promise<boolean>;
  /** @returns whether all were there. Keyv 5 takes one answer for all keys, and Keyv 6 takes it for each. */
  deleteMany(keys: readonly string[]): Promise<boolean>;
  /** Removes the values of its namespace, or all values without one. */
  clear(): Promise<void>;
  /** Keys and values of its namespace, or all without one. In no order, and one may come twice. */
  iterator(): AsyncGenerator<[key: string, value: unknown]>;
  /** It emits nothing. */
  on(event: string, listener: (...args: unknown[]) => void): this;
}

/**
 * A store for `CacheModule.register({ stores: [clusterCache({ maxBytes })] })`. All workers have the
 * same values: once `set()`, `delete()` or `clear()` has resolved, no worker reads an older value.
 * They reject if the hub does not confirm it. A `Keyv` hides that error without `throwOnErrors`.
 *
 * @throws ClusterConfigurationError
 */
export function clusterCache(options?: ClusterCacheOptions): ClusterCacheStore {
  return new Store(options);
}

/** Keyv 6 leaves namespaces to a store with all of these methods. */
class Store implements ClusterCacheStore {
  namespace: string | undefined = undefined;
  readonly #cache: SharedCache;

  readonly opts: Readonly<ClusterCacheOptions>;

  constructor(options: ClusterCacheOptions | undefined) {
    const warn = (message: string): void => currentLink()?.warn(message);
    this.#cache = new SharedCache(() => hubOf(currentLink()), options, warn);
    // Keyv 5 iterates only over stores of some dialects. Not enumerable: a copy of `opts` stays valid.
    this.opts = Object.defineProperty({ ...options }, 'dialect', { value: 'redis' });
  }

  async get<Value>(key: string): Promise<Value | undefined> {
    return (await this.#cache.get(this.#prefix + key))?.value as Value | undefined;
  }

  async set(key: string, value: unknown, ttl?: number): Promise<boolean> {
    return this.#cache.set(this.#prefix + key, value, ttl ?? null);
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

  async deleteMany(keys: readonly string[]): Promise<boolean> {
    return (await Promise.all(keys.map((key) => this.delete(key)))).every(Boolean);
  }

  async clear(): Promise<void> {
    return this.#cache.clear(this.#prefix || undefined);
  }

  async *iterator(): AsyncGenerator<[key: string, value: unknown]> {
    const prefix = this.#prefix;
    for await (const [key, value] of this.#cache.entries(prefix)) {
      yield [key.slice(prefix.length), value];
    }
  }

  on(): this {
    return this;
  }

  /** The NUL keeps apart two namespaces of which one begins with the other. */
  get #prefix(): string {
    return this.namespace ? `${this.namespace}\0` : '';
  }
}
