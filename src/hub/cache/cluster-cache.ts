import { AsyncLocalStorage } from 'node:async_hooks';
import { Inject, Injectable, Optional } from '@nestjs/common';
import { currentLink } from '../../contract/snapshot/current-link.js';
import { hubOf } from '../client/hub-of-process.js';
import { ClusterCacheReentryError } from '../client/cache/cache.errors.js';
import type { ClusterCacheOptions } from '../client/cache/cache-options.js';
import { LEASE_MS, SharedCache } from '../client/cache/shared-cache.js';

/** Injection token of the options of a {@link ClusterCache} that Nest creates. */
export const CLUSTER_CACHE_OPTIONS = Symbol('nestjs-cluster.cache-options');

/** How long a value is kept. */
export interface CacheTtl {
  /** How long the value lives, in ms. Default: until others need its room. */
  readonly ttlMs?: number | undefined;
}

/** A computation for several callers of this process. */
interface Round {
  /** For the one who began it. */
  readonly value: Promise<unknown>;
  /** For those who joined it; `undefined` where it takes too long. */
  readonly joined: Promise<Joined | undefined>;
}

interface Joined {
  readonly value: unknown;
  /** See {@link Found.fresh}: who asked before its end may have it. */
  readonly fresh: boolean;
}

/** What the code that runs now computes, from the outermost on. */
interface Computing {
  readonly cache: string;
  readonly key: string;
  readonly outer: Computing | undefined;
  ended: boolean;
}

/** Of all instances: those of one name are one cache. */
const COMPUTING = new AsyncLocalStorage<Computing>();

/** By itself it does not share values with a `CacheModule`. */
const NAME = 'values';

/**
 * A cache that all workers share, without cache-manager. Values are copied as `structuredClone()`
 * would: a `Date` stays one, an instance of a class does not. Provide it where it is injected.
 */
@Injectable()
export class ClusterCache {
  readonly #cache: SharedCache;
  /** What this process asks for now, until the value is computed. */
  readonly #rounds = new Map<string, Round>();

  /** @throws ClusterConfigurationError */
  constructor(@Optional() @Inject(CLUSTER_CACHE_OPTIONS) options?: ClusterCacheOptions) {
    const warn = (message: string): void => currentLink()?.warn(message);
    this.#cache = new SharedCache(() => hubOf(currentLink()), options, warn, NAME);
  }

  /** `undefined` where there is none, and where the hub does not answer in time. */
  async get<T>(key: string): Promise<T | undefined> {
    return (await this.#cache.get(key))?.value as T | undefined;
  }

  /**
   * Once it has resolved, no worker reads an older value.
   *
   * @throws ClusterCacheUnconfirmedError if the hub does not confirm that within 5 s;
   * ClusterConfigurationError for such a time to live.
   */
  async set(key: string, value: unknown, { ttlMs }: CacheTtl = {}): Promise<void> {
    await this.#cache.set(key, value, ttlMs ?? null);
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

  /** The same for all keys. @throws ClusterCacheUnconfirmedError */
  async clear(): Promise<void> {
    await this.#cache.clear();
  }

  /**
   * The value; where there is none, what `compute` gives. One process of the cluster computes it, and
   * all others that ask meanwhile wait for it, for at most 30 s: then the next one computes. If `compute`
   * throws, those of this process fail as well, and another process computes. What is computed is not
   * kept if its key was set or deleted meanwhile.
   *
   * @throws ClusterCacheReentryError inside the computation of the same key, and whatever `compute` throws.
   */
  async getOrSet<T>(
    key: string,
    compute: () => Promise<T> | T,
    { ttlMs }: CacheTtl = {},
  ): Promise<T> {
    const { name } = this.#cache;
    for (let each = COMPUTING.getStore(); each !== undefined; each = each.outer) {
      if (!each.ended && each.cache === name && each.key === key) {
        throw new ClusterCacheReentryError(key);
      }
    }
    for (let isFirst = true; ; isFirst = false) {
      const round = this.#rounds.get(key);
      if (round === undefined) return this.#begin(key, compute, ttlMs ?? null).value as Promise<T>;
      const joined = await round.joined;
      // A later round has begun after this call: its value is new enough in any case.
      if (joined !== undefined && (joined.fresh || !isFirst)) return joined.value as T;
    }
  }

  #begin(key: string, compute: () => unknown, ttlMs: number | null): Round {
    const leave = (): void => {
      clearTimeout(timer);
      if (this.#rounds.get(key) === round) this.#rounds.delete(key);
    };
    // From its end on another worker may replace the value: whoever comes then asks for himself.
    const found = this.#cache
      .getOrCompute(key, () => this.#compute(key, compute).finally(leave), ttlMs)
      .finally(leave);
    let giveUp = (): void => {};
    const late = new Promise<undefined>((resolve) => (giveUp = () => resolve(undefined)));
    const timer = setTimeout(() => {
      leave();
      giveUp();
    }, LEASE_MS).unref();
    const ended = found.then(async ({ value, fresh }) => ({ value, fresh: await fresh }));
    const round = { value: found.then(({ value }) => value), joined: Promise.race([ended, late]) };
    round.joined.catch(() => {}); // perhaps nobody has joined it
    this.#rounds.set(key, round);
    return round;
  }

  async #compute(key: string, compute: () => unknown): Promise<unknown> {
    const computing = {
      cache: this.#cache.name,
      key,
      outer: COMPUTING.getStore(),
      ended: false,
    };
    try {
      return await COMPUTING.run(computing, async () => compute());
    } finally {
      computing.ended = true;
    }
  }
}
