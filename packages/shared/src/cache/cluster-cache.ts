import { AsyncLocalStorage } from 'node:async_hooks';
import { Inject, Injectable, Optional } from '@nestjs/common';
import { validate } from '../options.js';
import { ClusterCacheReentryError } from './cache.errors.js';
import type { ClusterCacheOptions } from './cache-options.js';
import { ttlSchema } from './cached-value.js';
import { LEASE_MS, SharedCache } from './shared-cache.js';

/** Injection token for the options of a {@link ClusterCache} that Nest creates. */
export const CLUSTER_CACHE_OPTIONS = Symbol('nestjs-cluster.cache-options');

/** How long a value is kept. */
export interface CacheTtl {
  /** The value's time to live, in ms. Default: no end, but the value may be evicted. */
  readonly ttlMs?: number | undefined;
}

/** A computation that several callers of this process wait for. */
interface Round {
  /** The result for the caller that began the computation. */
  readonly value: Promise<unknown>;
  /** The result for the callers that joined; `undefined` if the computation takes too long. */
  readonly joined: Promise<{ readonly value: unknown; readonly fresh: boolean } | undefined>;
}

/** The computation inside which the current code runs, and the computation around that computation. */
interface Computing {
  readonly cache: string;
  readonly key: string;
  readonly outer: Computing | undefined;
  ended: boolean;
}

/** Shared by all instances, because instances with the same name are one cache. */
const COMPUTING = new AsyncLocalStorage<Computing>();

/** The default name. It differs from `default`, the name of the cache of a `CacheModule`. */
const NAME = 'values';

/**
 * A cache that all workers share, without cache-manager. Values are copied as by
 * `structuredClone()`: a `Date` stays a `Date`, and an instance of a class becomes a plain object.
 * Provide this class in each module that injects it.
 */
@Injectable()
export class ClusterCache {
  readonly #cache: SharedCache;
  /** The computations of this process that have not ended, by key. */
  readonly #rounds = new Map<string, Round>();

  /** @throws ClusterConfigurationError */
  constructor(@Optional() @Inject(CLUSTER_CACHE_OPTIONS) options?: ClusterCacheOptions) {
    this.#cache = new SharedCache(options, NAME);
  }

  /** @returns `undefined` if the cache has no such value, or if the hub does not answer in time. */
  async get<T>(key: string): Promise<T | undefined> {
    return (await this.#cache.get(key))?.value as T | undefined;
  }

  /**
   * Sets a value. When the promise resolves, no worker reads an older value any more.
   *
   * @throws ClusterCacheUnconfirmedError if the hub does not confirm the change within 5 s;
   * ClusterConfigurationError for wrong options.
   */
  async set(key: string, value: unknown, options?: CacheTtl): Promise<void> {
    const { ttlMs } = validate(ttlSchema, options ?? {}, 'options of set()');
    await this.#cache.set(key, value, ttlMs);
  }

  /**
   * Deletes a value. When the promise resolves, no worker reads a value that was set before.
   *
   * @returns whether there was a value.
   * @throws ClusterCacheUnconfirmedError if the hub does not confirm the change within 5 s.
   */
  delete(key: string): Promise<boolean> {
    return this.#cache.delete(key);
  }

  /** Deletes all values. @throws ClusterCacheUnconfirmedError */
  async clear(): Promise<void> {
    await this.#cache.clear();
  }

  /**
   * The value or, if there is none, the result of `compute`. One process of the cluster computes.
   * The others wait for at most 30 s, then the next process computes. A caller waits for two
   * computations at most. If `compute` throws, the waiting callers of its process fail too, and
   * another process computes. The result is not kept if it took longer than 30 s, or if its key was
   * set or deleted during the computation.
   *
   * @throws ClusterCacheReentryError inside the computation of the key, and every error of
   * `compute`.
   */
  async getOrSet<T>(key: string, compute: () => Promise<T> | T, options?: CacheTtl): Promise<T> {
    const { ttlMs } = validate(ttlSchema, options ?? {}, 'options of getOrSet()');
    const { name } = this.#cache;
    for (let each = COMPUTING.getStore(); each !== undefined; each = each.outer) {
      if (!each.ended && each.cache === name && each.key === key) {
        throw new ClusterCacheReentryError(key);
      }
    }
    const until = performance.now() + LEASE_MS;
    for (let joins = 0; ; joins += 1) {
      // After waiting for two computations, a caller computes itself.
      const round = joins < 2 ? this.#rounds.get(key) : undefined;
      if (round === undefined) {
        return this.#begin(key, compute, ttlMs, until).value as Promise<T>;
      }
      const joined = await round.joined;
      // A second computation began after this call, so its value is new enough in any case.
      if (joined !== undefined && (joined.fresh || joins > 0)) return joined.value as T;
    }
  }

  #begin(key: string, compute: () => unknown, ttlMs: number | null, until: number): Round {
    const leave = (): void => {
      clearTimeout(timer);
      if (this.#rounds.get(key) === round) this.#rounds.delete(key);
    };
    // Later callers ask the hub again, because another worker may replace the value by then.
    const found = this.#cache
      .getOrCompute(key, () => this.#compute(key, compute).finally(leave), ttlMs, until)
      .finally(leave);
    let giveUp = (): void => {};
    const late = new Promise<undefined>((resolve) => (giveUp = () => resolve(undefined)));
    const timer = setTimeout(() => {
      leave();
      giveUp();
    }, LEASE_MS).unref();
    const ended = found.then(async ({ value, fresh }) => ({ value, fresh: await fresh }));
    const round = { value: found.then(({ value }) => value), joined: Promise.race([ended, late]) };
    round.joined.catch(() => {}); // without joined callers, nobody handles its error
    this.#rounds.set(key, round);
    return round;
  }

  async #compute(key: string, compute: () => unknown): Promise<unknown> {
    const { name: cache } = this.#cache;
    const computing = { cache, key, outer: COMPUTING.getStore(), ended: false };
    try {
      return await COMPUTING.run(computing, async () => compute());
    } finally {
      computing.ended = true;
    }
  }
}
