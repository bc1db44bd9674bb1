import { setTimeout as delay } from 'node:timers/promises';
import type { HubClient } from '../hub-client.js';
import type { Answer, Question } from '../question.js';
import { HubError, orNone } from '../hub-error.js';
import { NO_BODY } from '../../wire/protocol.js';
import { ClusterCacheUnconfirmedError } from './cache.errors.js';
import { type ClusterCacheOptions, resolveCacheOptions } from './cache-options.js';
import { checkTtl, decode, encode } from './cached-value.js';
import { entriesOf } from './entries-of.js';

/** A request waits no longer for a value: it goes on as if there were none. */
const DEADLINE_MS = 250;

/** What changes values waits for a hub that hangs: it is started anew by then. */
const CHANGE_MS = 5_000;

/** Whoever computes for longer is not waited for any more. */
export const LEASE_MS = 30_000;

/** Nor is a hub that was silent just now. */
const DOUBTED_LEASE_MS = 1_000;

/** Beyond this the whole cache is cleared. */
const MAX_STALE_KEYS = 10_000;

type Leased = { readonly value: unknown } | { readonly grant: number } | undefined;

/** What {@link SharedCache.getOrCompute} has found or computed. */
export interface Found {
  readonly value: unknown;
  /** Nothing has changed the key between the begin of its computation and its end. Settles within seconds. */
  readonly fresh: Promise<boolean>;
}

/** One of the hub's caches. Where the hub does not answer it has no value, and keeps none. */
export class SharedCache {
  readonly #maxBytes: number;
  readonly name: string;
  /** Keys that the hub could not be told of: it may have an old value. */
  readonly #stale = new Set<string>();
  #allStale = false;
  #hub: HubClient | undefined;
  #warned: string | undefined;

  /**
   * @param find the hub. Not before it is used: a module may be loaded where no app runs.
   * @param warn is told once why the hub refuses a request.
   * @throws ClusterConfigurationError
   */
  constructor(
    private readonly find: () => HubClient,
    options?: ClusterCacheOptions,
    private readonly warn: (message: string) => void = () => {},
    defaultName = 'default',
  ) {
    const { maxBytes, name } = resolveCacheOptions(options, defaultName);
    this.#maxBytes = maxBytes;
    this.name = name;
  }

  async get(key: string): Promise<{ readonly value: unknown } | undefined> {
    return this.#valueIn(await this.#ask({ op: 'get', cache: this.name, key }));
  }

  /**
   * @returns whether it is kept. If not, there is no older value either.
   * @throws ClusterCacheUnconfirmedError, ClusterConfigurationError for such a time to live.
   */
  async set(key: string, value: unknown, ttlMs: number | null): Promise<boolean> {
    checkTtl(key, ttlMs);
    const { form, body } = encode(value);
    const at = { cache: this.name, key, form, ttlMs, maxBytes: this.#maxBytes };
    const until = performance.now() + CHANGE_MS;
    // Only once: another worker may have set it since.
    const asked = this.#open().askUntil({ op: 'set', ...at }, CHANGE_MS, { body });
    const answer = await orNone(asked.catch((error) => this.#noteRefusal(error)));
    if (answer?.header.t === 'done') {
      this.#count('evicted', answer.header.evicted);
      return true;
    }
    await this.#change('set()', key, { op: 'delete', cache: this.name, key }, until); // the old value is wrong now
    return false;
  }

  /** @returns whether it was there. @throws ClusterCacheUnconfirmedError */
  async delete(key: string): Promise<boolean> {
    const answer = await this.#change('delete()', key, { op: 'delete', cache: this.name, key });
    return answer?.header.t === 'done' && answer.header.changed > 0;
  }

  /** @param prefix of the keys whose values are removed. Default: all. @throws ClusterCacheUnconfirmedError */
  async clear(prefix?: string): Promise<void> {
    await this.#change('clear()', undefined, { op: 'clear', cache: this.name, prefix });
  }

  entries(prefix: string): AsyncGenerator<[key: string, value: unknown]> {
    const keys = (from: number) =>
      this.#open().askUntil({ op: 'keys', cache: this.name, prefix, from }, CHANGE_MS);
    return entriesOf(keys, (key) => this.get(key));
  }

  /**
   * Has a missing value computed by one process of the cluster; the others wait for it. If that one
   * fails or ends, the next one computes. What is computed is kept unless its key was changed meanwhile.
   *
   * @throws ClusterConfigurationError, and whatever `compute` throws.
   */
  async getOrCompute(key: string, compute: () => unknown, ttlMs: number | null): Promise<Found> {
    checkTtl(key, ttlMs);
    const answer = await this.#ask({ op: 'get', cache: this.name, key });
    const known = this.#valueIn(answer);
    if (known !== undefined) return { value: known.value, fresh: Promise.resolve(false) };
    const hub = this.#open();
    const leased = await this.#lease(key, answer === undefined ? DOUBTED_LEASE_MS : LEASE_MS);
    if (leased === undefined) {
      // Without a lease nobody knows whether the key is changed meanwhile.
      return { value: await compute(), fresh: Promise.resolve(hub.isUnavailable) };
    }
    if ('value' in leased) return { value: leased.value, fresh: Promise.resolve(false) };
    const giveBack = (): void => void hub.tell({ op: 'unlock', grant: leased.grant });
    const timer = setTimeout(giveBack, LEASE_MS).unref();
    try {
      const value = await compute();
      const filled = this.#fill(key, value, ttlMs, leased.grant);
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

  async #lease(key: string, waitMs: number): Promise<Leased> {
    const question = { op: 'lease', cache: this.name, key, waitMs } as const;
    const answer = await orNone(this.#open().askUntil(question, waitMs));
    if (answer?.header.t === 'granted') return { grant: answer.header.grant };
    return this.#valueIn(answer);
  }

  /** @throws Error where the value cannot be copied. */
  #fill(
    key: string,
    value: unknown,
    ttlMs: number | null,
    grant: number,
  ): Promise<Answer | undefined> {
    const { form, body } = encode(value);
    const at = { cache: this.name, key, form, ttlMs, maxBytes: this.#maxBytes };
    const asked = this.#open().askUntil({ op: 'fill', ...at, grant }, CHANGE_MS, { body });
    return orNone(asked.catch((error) => this.#noteRefusal(error))).then((answer) => {
      if (answer?.header.t === 'done') this.#count('evicted', answer.header.evicted);
      return answer;
    });
  }

  /**
   * Deletes, and asks again if the hub is lost: to forget a value once more is always right.
   *
   * @returns `undefined` if the hub refuses it: then it has no such value.
   * @throws ClusterCacheUnconfirmedError if there is no answer in time. The hub is told once it is there.
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
    this.#noteStale(key);
    const shown = key === undefined ? what : `${what} of '${key.slice(0, 40)}'`;
    throw new ClusterCacheUnconfirmedError(this.name, shown, why);
  }

  /** @returns `undefined` where the hub has not answered. What it refuses, it does not have either. */
  async #ask(question: Question): Promise<Answer | undefined> {
    const asked = this.#open().ask(question, DEADLINE_MS);
    return orNone(asked.catch((error) => this.#noteRefusal(error)));
  }

  /** @throws the error, if it is another one. */
  #noteRefusal(error: unknown): Answer {
    if (!(error instanceof HubError) || error.failure !== 'refused') throw error;
    const why = error.message;
    if (why !== this.#warned) this.warn(`the cache '${this.name}' does not keep a value: ${why}`);
    this.#warned = why;
    return { header: { t: 'refused', id: 0, why }, body: NO_BODY };
  }

  #valueIn(answer: Answer | undefined): { readonly value: unknown } | undefined {
    if (answer?.header.t !== 'hit') {
      this.#count('miss', 1);
      return undefined;
    }
    this.#count('hit', 1);
    return { value: decode(answer.header.form, answer.body) };
  }

  #count(what: string, count: number): void {
    this.#open().noteOutcome('cache', what, count);
  }

  #open(): HubClient {
    if (this.#hub === undefined) {
      this.#hub = this.find();
      const tell = (): void => this.#tellStale();
      this.#hub.listen({ opened: tell, drained: tell });
    }
    return this.#hub;
  }

  /**
   * Before anything else is asked. Another hub is told as well: workers that reached it before this
   * one may have set old values again.
   */
  #tellStale(): void {
    const keys = this.#allStale ? [undefined] : [...this.#stale];
    this.#stale.clear();
    this.#allStale = false;
    const cache = this.name;
    for (const key of keys) {
      const question: Question =
        key === undefined ? { op: 'clear', cache } : { op: 'delete', cache, key };
      void orNone(this.#open().askUntil(question, CHANGE_MS)).then((answer) => {
        if (answer === undefined) this.#noteStale(key);
      });
    }
  }

  /** @param key none: all of them. */
  #noteStale(key: string | undefined): void {
    if (key !== undefined) this.#stale.add(key);
    this.#allStale ||= key === undefined || this.#stale.size > MAX_STALE_KEYS;
    if (this.#allStale) this.#stale.clear();
  }
}
