import { Inject, Injectable, Optional } from '@nestjs/common';
import { currentLink } from '../../bootstrap/current-link.js';
import { hubOf } from '../../hub/client/hub-of-process.js';
import { type ClusterCacheOptions, SharedCache } from '../../hub/client/shared-cache.js';

/** Injection token of the options of a {@link ClusterCache} that Nest creates. */
export const CLUSTER_CACHE_OPTIONS = Symbol('nestjs-cluster.cache-options');

/** How long a value is kept. */
export interface CacheTtl {
  /** How long the value lives, in ms. Default: until others need its room. */
  readonly ttlMs?: number | undefined;
}

interface Round {
  readonly value: unknown;
  readonly computed: boolean;
}

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
  readonly #rounds = new Map<string, Promise<Round>>();

  /** @throws ClusterConfigurationError */
  constructor(@Optional() @Inject(CLUSTER_CACHE_OPTIONS) options?: ClusterCacheOptions) {
    const name = options?.name ?? NAME;
    const warn = (message: string): void => currentLink()?.warn(message);
    this.#cache = new SharedCache(() => hubOf(currentLink()), { ...options, name }, warn);
  }

  /** `undefined` where there is none, and where the hub does not answer. */
  async get<T>(key: string): Promise<T | undefined> {
    return (await this.#cache.get(key))?.value as T | undefined;
  }

  async set(key: string, value: unknown, { ttlMs }: CacheTtl = {}): Promise<void> {
    await this.#cache.set(key, value, ttlMs ?? null);
  }

  /** @returns whether it was there. */
  delete(key: string): Promise<boolean> {
    return this.#cache.delete(key);
  }

  async clear(): Promise<void> {
    await this.#cache.clear();
  }

  /**
   * The value; where there is none, what `compute` gives. One process of the cluster computes it, and
   * all others that ask meanwhile wait for it. If `compute` throws, those of this process fail as
   * well, and another process computes.
   *
   * @throws whatever `compute` throws.
   */
  async getOrSet<T>(
    key: string,
    compute: () => Promise<T> | T,
    { ttlMs }: CacheTtl = {},
  ): Promise<T> {
    const begin = (): Promise<Round> => this.#begin(key, compute, ttlMs ?? null);
    const before = this.#rounds.get(key);
    let round = await (before ?? begin());
    // A value that was there may have been asked for before this call, and replaced since.
    if (before !== undefined && !round.computed) round = await (this.#rounds.get(key) ?? begin());
    return round.value as T;
  }

  #begin(key: string, compute: () => unknown, ttlMs: number | null): Promise<Round> {
    let computed = false;
    const leave = (): void => {
      if (this.#rounds.get(key) === round) this.#rounds.delete(key);
    };
    // From then on another worker may replace the value: whoever comes now asks for himself.
    const computeOnce = async (): Promise<unknown> => {
      try {
        return await compute();
      } finally {
        computed = true;
        leave();
      }
    };
    const round = this.#cache
      .getOrCompute(key, computeOnce, ttlMs)
      .finally(leave)
      .then((value) => ({ value, computed }));
    this.#rounds.set(key, round);
    return round;
  }
}
