import { deserialize } from 'node:v8';
import * as v from 'valibot';
import {
  type Answer,
  type HubClient,
  HubError,
  orNone,
  type Question,
} from '../client/hub-client.js';
import { hubOf } from '../client/hub-of-process.js';
import { ClusterSharedError } from '../errors.js';
import { encode, integer, text, validate } from '../options.js';

/** The maximum size and the name of a cache that all workers share. */
export interface ClusterCacheOptions {
  /**
   * The maximum size of all keys and values, at least 64 KiB. Beyond it, the least recently used
   * values are removed. Default: 64 MiB.
   */
  readonly maxBytes?: number | undefined;
  /**
   * The cache's name, 1 to 256 characters. Caches with the same name share their values, and the
   * maximum size of the first one. Default: `default`; for a `ClusterCache`, `values`.
   */
  readonly name?: string | undefined;
}

/** Maximum time that a read waits for the hub, in ms. After that, the caller gets no value. */
const DEADLINE_MS = 250;

/** Maximum time that a change waits for the hub, in ms. Long enough for a restart of the hub. */
const CHANGE_MS = 5_000;

/** Maximum time that callers wait for a computation, in ms. */
export const LEASE_MS = 30_000;

const TTL = 'a number, 0 or more';
const ttlSchema = v.strictObject({
  ttlMs: v.nullish(v.pipe(v.number(TTL), v.minValue(0, TTL)), null),
});

/** @returns the time to live; `null` for no expiry. @throws ClusterConfigurationError */
export function ttlOf(options: object | undefined, call: string): number | null {
  return validate(ttlSchema, options ?? {}, `options of ${call}`).ttlMs;
}

/** The result of {@link SharedCache.getOrCompute}. */
export interface Found {
  readonly value: unknown;
  /** Whether the value was computed while its key stayed unchanged. */
  readonly fresh: boolean;
}

/** A cache of the hub. While the hub does not answer, reads find no values and changes fail. */
export class SharedCache {
  readonly #maxBytes: number;
  readonly name: string;
  #found: HubClient | undefined;

  /** @throws ClusterConfigurationError */
  constructor(options: ClusterCacheOptions | undefined, defaultName: string) {
    const schema = v.strictObject({
      maxBytes: v.optional(integer(64 * 1024, 2 ** 40), 64 * 1024 * 1024),
      name: v.optional(text(256), defaultName),
    });
    const { maxBytes, name } = validate(schema, options ?? {}, 'options of a cluster cache');
    this.#maxBytes = maxBytes;
    this.name = name;
  }

  /** Connected on first use, because the module may be loaded where no app runs. */
  get #hub(): HubClient {
    return (this.#found ??= hubOf());
  }

  /** @returns `undefined` for a missing value, or if the hub does not answer in time. */
  async get(key: string): Promise<unknown> {
    const question = { op: 'get', cache: this.name, key } as const;
    return valueIn(await orNone(this.#hub.ask(question, DEADLINE_MS)));
  }

  /**
   * Sends the value only once, because another worker may set the key before a second attempt. If the
   * hub does not confirm the value, deletes the key.
   *
   * @returns whether the value was stored.
   * @throws ClusterSharedError if the value cannot be copied, or the hub confirms neither change.
   */
  async set(key: string, value: unknown, ttlMs: number | null): Promise<boolean> {
    const until = performance.now() + CHANGE_MS;
    const body = encode('the value', value);
    const set = { op: 'set', cache: this.name, key, ttlMs, maxBytes: this.#maxBytes } as const;
    if (await orNone(this.#hub.ask(set, CHANGE_MS, { body }))) return true;
    await this.#change('set()', { op: 'delete', cache: this.name, key }, until);
    return false;
  }

  /** @returns whether there was a value. @throws ClusterSharedError */
  async delete(key: string): Promise<boolean> {
    const { header } = await this.#change('delete()', { op: 'delete', cache: this.name, key });
    return header.t === 'done' && header.changed > 0;
  }

  /** @param prefix only keys with this prefix are deleted. @throws ClusterSharedError */
  async clear(prefix?: string): Promise<void> {
    await this.#change('clear()', { op: 'clear', cache: this.name, prefix });
  }

  /** Keys and values, unordered. @throws Error if the hub does not answer, or the keys exceed 24 MiB. */
  async *entries(prefix: string): AsyncGenerator<[key: string, value: unknown]> {
    const question = { op: 'keys', cache: this.name, prefix } as const;
    const { header } = await this.#hub.ask(question, CHANGE_MS);
    for (const key of header.t === 'keys' ? header.keys : []) {
      const value = await this.get(key);
      if (value !== undefined) yield [key, value];
    }
  }

  /**
   * Gets a value. If there is none, one process of the cluster computes it. If that process fails
   * or exits, the next process computes. The result is stored unless its key changed meanwhile.
   *
   * @param until when the wait for another process ends, by `performance.now()`.
   * @throws any error from `compute`.
   */
  async getOrCompute(
    key: string,
    compute: () => unknown,
    ttlMs: number | null,
    until: number,
  ): Promise<Found> {
    const at = { cache: this.name, key };
    const known = await orNone(this.#hub.ask({ op: 'get', ...at }, DEADLINE_MS));
    // If there is no answer, the hub may hang, so this process computes without a lease.
    const answer =
      known?.header.t === 'miss'
        ? await orNone(
            this.#hub.ask({ op: 'lease', ...at }, Math.max(0, until - performance.now())),
          )
        : known;
    if (answer?.header.t === 'granted')
      return this.#compute(at, compute, ttlMs, answer.header.grant);
    const value = valueIn(answer);
    // Without a lease, the key may have changed during the computation.
    return { value: value === undefined ? await compute() : value, fresh: false };
  }

  /** Computes a value while this process holds the key's lease. */
  async #compute(
    at: { readonly cache: string; readonly key: string },
    compute: () => unknown,
    ttlMs: number | null,
    grant: number,
  ): Promise<Found> {
    const giveBack = (): void => void this.#hub.tell({ op: 'unlock', grant });
    const timer = setTimeout(giveBack, LEASE_MS).unref();
    try {
      const value = await compute();
      const fill = { op: 'fill', ...at, grant, ttlMs, maxBytes: this.#maxBytes } as const;
      const body = encode('the value', value);
      const filled = await orNone(this.#hub.ask(fill, DEADLINE_MS, { body }));
      if (filled === undefined) giveBack();
      return { value, fresh: filled?.header.t === 'done' };
    } catch (error) {
      giveBack();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * Deletes values. Retries if the connection is lost: deleting twice is harmless.
   *
   * @throws ClusterSharedError if no answer arrives in time.
   */
  async #change(
    what: string,
    question: Question,
    until = performance.now() + CHANGE_MS,
  ): Promise<Answer> {
    try {
      return await this.#hub.askPatiently(() => question, Math.max(0, until - performance.now()));
    } catch (error) {
      if (!(error instanceof HubError)) throw error;
      throw new ClusterSharedError(
        `${what} of the cache '${this.name}' was not confirmed: ${error.message}; other workers may read an older value, so try again`,
      );
    }
  }
}

function valueIn(answer: Answer | undefined): unknown {
  return answer?.header.t === 'hit' ? deserialize(answer.body) : undefined;
}
