import { Inject, Injectable, Optional } from '@nestjs/common';
import {
  type ClusterCacheOptions,
  type Found,
  LEASE_MS,
  SharedCache,
  ttlOf,
} from './shared-cache.js';

/** Injection token for the options of a {@link ClusterCache} that Nest creates. */
export const CLUSTER_CACHE_OPTIONS = Symbol('nestjs-cluster.cache-options');

/** How long a value is kept. */
export interface CacheTtl {
  /** The value's time to live, in ms. Default: no expiry, but the value may be evicted. */
  readonly ttlMs?: number | undefined;
}

/** The default name. Must differ from `default`, the name of a `CacheModule`'s cache. */
const NAME = 'values';

/**
 * A cache shared by all workers, without cache-manager. Values are copied as if by
 * `structuredClone()`: a `Date` stays a `Date`, and a class instance becomes a plain object.
 * Provide this class in each module that injects it.
 */
@Injectable()
export class ClusterCache {
  readonly #cache: SharedCache;
  /** The running computations of this process, by key. */
  readonly #rounds = new Map<string, Promise<Found | undefined>>();

  /** @throws ClusterConfigurationError */
  constructor(@Optional() @Inject(CLUSTER_CACHE_OPTIONS) options?: ClusterCacheOptions) {
    this.#cache = new SharedCache(options, NAME);
  }

  /** @returns `undefined` if the cache has no such value, or if the hub does not answer in time. */
  async get<T>(key: string): Promise<T | undefined> {
    return (await this.#cache.get(key)) as T | undefined;
  }

  /**
   * Sets a value. Once the promise resolves, no worker reads an older value.
   *
   * @throws ClusterSharedError if the hub does not confirm the change within 5 s;
   * ClusterConfigurationError for wrong options.
   */
  async set(key: string, value: unknown, options?: CacheTtl): Promise<void> {
    await this.#cache.set(key, value, ttlOf(options, 'set()'));
  }

  /**
   * Deletes a value. Once the promise resolves, no worker reads the deleted value.
   *
   * @returns whether there was a value.
   * @throws ClusterSharedError if the hub does not confirm the change within 5 s.
   */
  delete(key: string): Promise<boolean> {
    return this.#cache.delete(key);
  }

  /** Deletes all values. @throws ClusterSharedError */
  async clear(): Promise<void> {
    await this.#cache.clear();
  }

  /**
   * The value or, if there is none, the result of `compute`. One process of the cluster computes
   * it. The others wait at most 30 s, then the next one computes it. If `compute` throws, the
   * waiting callers in its process fail too, and another process computes. The result is not stored
   * if it took longer than 30 s, or if its key was set or deleted during the computation. A call
   * for the same key inside `compute` waits for itself, for 30 s.
   *
   * @throws ClusterSharedError for a value that cannot be copied; any error from `compute`.
   */
  async getOrSet<T>(key: string, compute: () => Promise<T> | T, options?: CacheTtl): Promise<T> {
    const ttlMs = ttlOf(options, 'getOrSet()');
    const until = performance.now() + LEASE_MS;
    for (let joined = 0; joined < 2; joined += 1) {
      const round = this.#rounds.get(key);
      if (round === undefined) break;
      const found = await round;
      // A second computation began after this call, so its value is never too old.
      if (found !== undefined && (found.fresh || joined > 0)) return found.value as T;
    }
    return (await this.#begin(key, compute, ttlMs, until)).value as T;
  }

  /** Starts a computation. Later callers in this process share it, for at most 30 s. */
  #begin(key: string, compute: () => unknown, ttlMs: number | null, until: number): Promise<Found> {
    const leave = (): void => {
      clearTimeout(timer);
      if (this.#rounds.get(key) === round) this.#rounds.delete(key);
    };
    const found = this.#cache.getOrCompute(
      key,
      async () => {
        try {
          return await compute();
        } finally {
          leave(); // from now on, another worker may change the value, so later callers must ask the hub
        }
      },
      ttlMs,
      until,
    );
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), LEASE_MS).unref();
    });
    const round = Promise.race([found, late]);
    this.#rounds.set(key, round);
    round.then(leave, leave);
    return found;
  }
}
