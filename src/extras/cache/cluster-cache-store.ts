import { currentLink } from '../../bootstrap/current-link.js';
import { hubOf } from '../../hub/client/hub-of-process.js';
import { type ClusterCacheOptions, SharedCache } from '../../hub/client/shared-cache.js';

/**
 * What Keyv 5 and 6 expect of a store. It is no `Keyv`: cache-manager makes one of it, of the version
 * that it has.
 */
export interface ClusterCacheStore {
  readonly opts: Readonly<ClusterCacheOptions>;
  namespace?: string | undefined;
  get<Value>(key: string): Promise<Value | undefined>;
  set(key: string, value: unknown, ttl?: number): Promise<boolean>;
  delete(key: string): Promise<boolean>;
  clear(): Promise<void>;
  /** It emits nothing. */
  on(event: string, listener: (...args: unknown[]) => void): this;
}

/**
 * A store for `CacheModule.register({ stores: [clusterCache({ maxBytes })] })`. All workers have the
 * same values: what one sets or deletes is set or deleted for all by the time that it is told so.
 *
 * @throws ClusterConfigurationError
 */
export function clusterCache(options: ClusterCacheOptions = {}): ClusterCacheStore {
  return new Store(options);
}

class Store implements ClusterCacheStore {
  readonly #cache: SharedCache;

  constructor(readonly opts: Readonly<ClusterCacheOptions>) {
    this.#cache = new SharedCache(() => hubOf(currentLink()), opts);
  }

  async get<Value>(key: string): Promise<Value | undefined> {
    return (await this.#cache.get(key))?.value as Value | undefined;
  }

  /** @param ttl in ms. */
  set(key: string, value: unknown, ttl?: number): Promise<boolean> {
    return this.#cache.set(key, value, ttl ?? null);
  }

  delete(key: string): Promise<boolean> {
    return this.#cache.delete(key);
  }

  clear(): Promise<void> {
    return this.#cache.clear();
  }

  on(): this {
    return this;
  }
}
