import { setTimeout as delay } from 'node:timers/promises';
import { extension } from 'nestjs-cluster/extension';
import type { HubClient } from '../client/hub-client.js';
import type { Answer, Question } from '../client/hub-client.interface.js';
import { HubError, orNone } from '../client/hub-error.js';
import { hubOf, loadHub } from '../client/hub-of-process.js';
import { NO_BODY } from '../wire/limits.js';
import { ClusterCacheUnconfirmedError } from './cache.errors.js';
import { type ClusterCacheOptions, resolveCacheOptions } from './cache-options.js';
import { decode, encode } from './cached-value.js';
import { StaleKeys } from './stale-keys.js';

/** Maximum time that a read waits for the hub, in ms. Beyond it, the caller gets no value. */
const DEADLINE_MS = 250;

/** How long a change waits for the hub: long enough for the restart of a hub that hangs. */
const CHANGE_MS = 5_000;

/** Maximum time that callers wait for a computation, in ms. */
export const LEASE_MS = 30_000;

/** How long a computation is waited for, in ms, if the hub did not answer the read before it. */
const DOUBTED_LEASE_MS = 1_000;

type CachedValue = { readonly value: unknown } | undefined;

/** The result of {@link SharedCache.getOrCompute}. */
export interface Found {
  readonly value: unknown;
  /** Whether the key stayed unchanged during the computation. Settles within seconds. */
  readonly fresh: Promise<boolean>;
}

/** One of the hub's caches. While the hub does not answer, reads find nothing and writes fail. */
export class SharedCache {
  readonly #maxBytes: number;
  readonly name: string;
  #stale: StaleKeys | undefined;
  #hub: HubClient | undefined;
  #warned: string | undefined;

  /** @throws ClusterConfigurationError */
  constructor(options: ClusterCacheOptions | undefined, defaultName: string) {
    const { maxBytes, name } = resolveCacheOptions(options, defaultName);
    this.#maxBytes = maxBytes;
    this.name = name;
    loadHub();
  }

  async get(key: string): Promise<CachedValue> {
    return this.#valueIn(await this.#ask({ op: 'get', cache: this.name, key }));
  }

  /**
   * @returns whether the value is kept. If it is not kept, the older value is deleted.
   * @throws ClusterCacheUnconfirmedError
   */
  async set(key: string, value: unknown, ttlMs: number | null): Promise<boolean> {
    const until = performance.now() + CHANGE_MS;
    const answer = await this.#put(key, value, ttlMs);
    if (answer?.header.t === 'done') return true;
    // The hub has not set the value, so the old value must go.
    await this.#change('set()', key, { op: 'delete', cache: this.name, key }, until);
    return false;
  }

  /** @returns whether there was a value. @throws ClusterCacheUnconfirmedError */
  async delete(key: string): Promise<boolean> {
    const answer = await this.#change('delete()', key, { op: 'delete', cache: this.name, key });
    return answer?.header.t === 'done' && answer.header.changed > 0;
  }

  /** @param prefix only keys with this prefix are deleted. @throws ClusterCacheUnconfirmedError */
  async clear(prefix?: string): Promise<void> {
    await this.#change('clear()', undefined, { op: 'clear', cache: this.name, prefix });
  }

  /**
   * Keys and values, unordered.
   *
   * @throws Error if the hub does not answer, or the keys have more than 24 MiB.
   */
  async *entries(prefix: string): AsyncGenerator<[key: string, value: unknown]> {
    const question = { op: 'keys', cache: this.name, prefix } as const;
    const answer = await this.#open().askUntil(question, CHANGE_MS);
    if (answer?.header.t !== 'keys') throw new Error('the hub does not tell what a cache holds');
    for (const key of answer.header.keys) {
      const found = await this.get(key);
      if (found !== undefined) yield [key, found.value];
    }
  }

  /**
   * Gets a value. If there is none, one process of the cluster computes it. If that process fails
   * or ends, the next process computes. The result is kept unless its key was changed by then.
   *
   * @param until when the wait for another process ends, by `performance.now()`.
   * @throws every error of `compute`.
   */
  async getOrCompute(
    key: string,
    compute: () => unknown,
    ttlMs: number | null,
    until = performance.now() + LEASE_MS,
  ): Promise<Found> {
    const known = await this.#ask({ op: 'get', cache: this.name, key });
    const cached = this.#valueIn(known);
    if (cached !== undefined) return { value: cached.value, fresh: Promise.resolve(false) };
    const hub = this.#open();
    const leftMs = Math.max(0, until - performance.now());
    const waitMs = known === undefined ? Math.min(DOUBTED_LEASE_MS, leftMs) : leftMs;
    const question = { op: 'lease', cache: this.name, key, waitMs } as const;
    const answer = await orNone(hub.askUntil(question, waitMs));
    if (answer?.header.t === 'granted') return this.#compute(key, compute, ttlMs, answer.header);
    const found = this.#valueIn(answer);
    if (found !== undefined) return { value: found.value, fresh: Promise.resolve(false) };
    // Without a lease it is unknown whether the key changes during the computation.
    return { value: await compute(), fresh: Promise.resolve(hub.isUnavailable) };
  }

  /** Computes while this process has the hub's lease of the key. */
  async #compute(
    key: string,
    compute: () => unknown,
    ttlMs: number | null,
    { grant }: { readonly grant: number },
  ): Promise<Found> {
    const giveBack = (): void => void this.#open().tell({ op: 'unlock', grant });
    const timer = setTimeout(giveBack, LEASE_MS).unref();
    try {
      const value = await compute();
      const filled = this.#put(key, value, ttlMs, grant);
      await Promise.race([filled, delay(DEADLINE_MS, undefined, { ref: false })]);
      const fresh = filled.then((answer) => {
        if (answer === undefined || answer.header.t === 'refused') giveBack();
        return answer?.header.t === 'done';
      });
      return { value, fresh };
    } catch (error) {
      giveBack();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * Sends a value, only once: before a second try, another worker may have set the key.
   *
   * @param grant the lease with which the value was computed.
   * @throws Error if the value cannot be copied.
   */
  async #put(
    key: string,
    value: unknown,
    ttlMs: number | null,
    grant?: number,
  ): Promise<Answer | undefined> {
    const { form, body } = encode(value);
    const cached = { cache: this.name, key, form, ttlMs, maxBytes: this.#maxBytes };
    const question: Question =
      grant === undefined ? { op: 'set', ...cached } : { op: 'fill', grant, ...cached };
    const answer = await this.#askFor(this.#open().askUntil(question, CHANGE_MS, { body }));
    if (answer?.header.t === 'done') this.#count('evicted', answer.header.evicted);
    return answer;
  }

  /**
   * Deletes values, and asks again if the connection is lost, because a delete can be repeated.
   *
   * @returns `undefined` if the hub refuses the request, and so has no such value.
   * @throws ClusterCacheUnconfirmedError without an answer in time. The change is repeated later.
   */
  async #change(
    what: string,
    key: string | undefined,
    question: Question,
    until = performance.now() + CHANGE_MS,
  ): Promise<Answer | undefined> {
    let why = `the hub has not answered within ${CHANGE_MS} ms`;
    try {
      const left = Math.max(0, until - performance.now());
      const answer = await this.#open().askPatiently(() => question, left);
      if (answer !== undefined) return answer;
    } catch (error) {
      if (!(error instanceof HubError)) throw error;
      if (error.failure === 'refused') return void this.#noteRefusal(error);
      why = error.message;
    }
    this.#stale!.add(key);
    const shown = key === undefined ? what : `${what} of '${key.slice(0, 40)}'`;
    throw new ClusterCacheUnconfirmedError(this.name, shown, why);
  }

  #ask(question: Question): Promise<Answer | undefined> {
    return this.#askFor(this.#open().ask(question, DEADLINE_MS));
  }

  /** @returns `undefined` if the hub does not answer. */
  #askFor(asked: Promise<Answer | undefined>): Promise<Answer | undefined> {
    return orNone(asked.catch((error) => this.#noteRefusal(error)));
  }

  /** @throws the error, if the hub has not refused the request. */
  #noteRefusal(error: unknown): Answer {
    if (!(error instanceof HubError) || error.failure !== 'refused') throw error;
    const why = error.message;
    if (why !== this.#warned)
      extension()?.warn(`the cache '${this.name}' does not keep a value: ${why}`);
    this.#warned = why;
    return { header: { t: 'refused', id: 0, why }, body: NO_BODY };
  }

  #valueIn(answer: Answer | undefined): CachedValue {
    const value = answer?.header.t === 'hit' ? decode(answer.header.form, answer.body) : undefined;
    this.#count(value === undefined ? 'miss' : 'hit', 1);
    return value;
  }

  #count(what: string, count: number): void {
    this.#open().noteOutcome('cache', what, count);
  }

  /** Connects at the first use, because the module may be loaded where no app runs. */
  #open(): HubClient {
    if (this.#hub === undefined) {
      this.#hub = hubOf();
      this.#stale = new StaleKeys(this.#hub, this.name);
    }
    return this.#hub;
  }
}
