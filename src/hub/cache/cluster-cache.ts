import { AsyncLocalStorage } from 'node:async_hooks';
import { Inject, Injectable, Optional } from '@nestjs/common';
import { validate } from '../../contract/options/check/validate.js';
import { currentLink } from '../../contract/snapshot/current-link.js';
import { hubOf } from '../client/hub-of-process.js';
import { ClusterCacheReentryError } from './cache.errors.js';
import type { ClusterCacheOptions } from './cache-options.js';
import { ttlSchema } from './cached-value.js';
import { LEASE_MS, SharedCache } from './shared-cache.js';

/** Injection token for the options of a {@link ClusterCache} that Nest creates. */
export const CLUSTER_CACHE_OPTIONS = Symbol('nestjs-cluster.cache-options');

/** How long a value is kept. */
export interface CacheTtl {
  /** The value's time to live, in ms. Default: until others need its room. */
  readonly ttlMs?: number | undefined;
}

/** A computation that several callers of this process wait for. */
interface Round {
  /** For the caller that began it. */
  readonly value: Promise<unknown>;
  /** For the callers that joined it; `undefined` if it takes too long. */
  readonly joined: Promise<{ readonly value: unknown; readonly fresh: boolean } | undefined>;
}

/** The computations of the running code, from the innermost on. */
interface Computing {
  readonly cache: string;
  readonly key: string;
  readonly outer: Computing | undefined;
  ended: boolean;
}

/** One for all instances: instances of the same name are one cache. */
const COMPUTING = new AsyncLocalStorage<Computing>();

/** Not `default`, the name of the cache of a `CacheModule`. */
const NAME = 'values';

/**
 * A cache that all workers share, without cache-manager. Values are copied as by `structuredClone()`: a
 * `Date` stays a `Date`, and an instance of a class becomes a plain object. Provide it in each module
 * that injects it.
 */
@Injectable()
export class ClusterCache {
  readonly #cache: SharedCache;
  /** The open computations of this process, by key. */
  readonly #rounds = new Map<string, Round>();

  /** @throws ClusterConfigurationError */
  constructor(@Optional() @Inject(CLUSTER_CACHE_OPTIONS) options?: ClusterCacheOptions) {
    const warn = (message: string): void => currentLink()?.warn(message);
    this.#cache = new SharedCache(() => hubOf(currentLink()), options, warn, NAME);
  }

  /** @returns `undefined` without a value, or if the hub does not answer in time. */
  async get<T>(key: string): Promise<T | undefined> {
    return (await this.#cache.get(key))?.value as T | undefined;
  }

  /**
   * Once it has resolved, no worker reads an older value.
   *
   * @throws ClusterCacheUnconfirmedError if the hub does not confirm that within 5 s;
   * ClusterConfigurationError for wrong options.
   */
  async set(key: string, value: unknown, options?: CacheTtl): Promise<void> {
    const { ttlMs } = validate(ttlSchema, options, 'options of set()');
    await this.#cache.set(key, value, ttlMs);
  }

  /**
   * Once it has resolved, no worker reads a value that was set before.
   *
   * @returns whether it was there.
   * @throws ClusterCacheUnconfirmedError if the hub does not confirm that within 5 s.
   */
  delete(key: string): Promise<boolean> {
    return this.#cache.delete(key);
  }

  /** Deletes all values. @throws ClusterCacheUnconfirmedError */
  async clear(): Promise<void> {
    await this.#cache.clear();
  }

  /**
   * The value or, if there is none, the result of `compute`. One process of the cluster computes it,
   * and all others wait for it, for at most 30 s: then the next one computes. Nobody waits for a third
   * one. If `compute` throws, the callers of this process fail as well, and another process computes. The
   * result is not kept if it took longer than 30 s, or if its key was set or deleted during that time.
   *
   * @throws ClusterCacheReentryError inside the computation of the same key, and every error of `compute`.
   */
  async getOrSet<T>(key: string, compute: () => Promise<T> | T, options?: CacheTtl): Promise<T> {
    const { ttlMs } = validate(ttlSchema, options, 'options of getOrSet()');
    const { name } = this.#cache;
    for (let each = COMPUTING.getStore(); each !== undefined; each = each.outer) {
      if (!each.ended && each.cache === name && each.key === key) {
        throw new ClusterCacheReentryError(key);
      }
    }
    const until = performance.now() + LEASE_MS;
    for (let joins = 0; ; joins += 1) {
      // Nobody waits for a third computation.
      const round = joins < 2 ? this.#rounds.get(key) : undefined;
      if (round === undefined) {
        return this.#begin(key, compute, ttlMs, until).value as Promise<T>;
      }
      const joined = await round.joined;
      // A second round began after this call, so its value is new enough in any case.
      if (joined !== undefined && (joined.fresh || joins > 0)) return joined.value as T;
    }
  }

  #begin(key: string, compute: () => unknown, ttlMs: number | null, until: number): Round {
    const leave = (): void => {
      clearTimeout(timer);
      if (this.#rounds.get(key) === round) this.#rounds.delete(key);
    };
    // After the computation another worker may replace the value, so later callers ask anew.
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
    round.joined.catch(() => {}); // perhaps nobody joins it
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
