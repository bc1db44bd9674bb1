import { deserialize, serialize } from 'node:v8';
import { ClusterConfigurationError, oneLine } from '../../errors/index.js';
import type { HubClient } from './hub-client.js';
import type { Answer } from './question.js';
import { HubError, orNone } from './hub-error.js';
import { MAX_BODY_BYTES, NO_BODY } from '../protocol.js';

/** What a cache that all workers share may hold. */
export interface ClusterCacheOptions {
  /** What it may hold in all, keys included; at least 64 KiB. Default: 64 MiB. */
  readonly maxBytes?: number | undefined;
  /** Caches of the same name are one. */
  readonly name?: string | undefined;
}

const MIN_BYTES = 64 * 1024;
const DEFAULT_BYTES = 64 * 1024 * 1024;

/** A request waits no longer for the hub: it goes on as if there were no value. */
const DEADLINE_MS = 250;

/** It looks at each key, and waits for others meanwhile. */
const CLEAR_MS = 5_000;

/** Whoever computes for longer is not waited for any more. */
const LEASE_MS = 30_000;

/** Nor is a hub that has just been silent: it may be slow, or hang. */
const DOUBTED_LEASE_MS = 1_000;

/** Beyond this the whole cache is cleared. */
const MAX_STALE_KEYS = 10_000;

/** One of the hub's caches. Where the hub does not answer it has no value, and keeps none. */
export class SharedCache {
  readonly #maxBytes: number;
  readonly #name: string;
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
    { maxBytes = DEFAULT_BYTES, name = 'default' }: ClusterCacheOptions = {},
    private readonly warn: (message: string) => void = () => {},
  ) {
    if (!Number.isSafeInteger(maxBytes) || maxBytes < MIN_BYTES) {
      throw new ClusterConfigurationError(
        `maxBytes of a cluster cache is ${maxBytes}; it is a whole number of at least ${MIN_BYTES}`,
      );
    }
    this.#maxBytes = maxBytes;
    this.#name = name;
  }

  async get(key: string): Promise<{ readonly value: unknown } | undefined> {
    const answer = await this.#ask((cache) => ({ op: 'get', cache, key }));
    return this.#valueIn(answer);
  }

  /** @returns whether it is kept. @throws ClusterConfigurationError */
  async set(key: string, value: unknown, ttlMs: number | null): Promise<boolean> {
    checkTtl(key, ttlMs);
    return this.#write(key, value, (header, body) =>
      this.#ask((cache) => ({ op: 'set', cache, key, ttlMs, ...header }), body),
    );
  }

  /** @returns whether it was there. */
  async delete(key: string): Promise<boolean> {
    const answer = await this.#ask((cache) => ({ op: 'delete', cache, key }));
    if (answer === undefined) this.#noteStale(key);
    return answer?.header.t === 'done' && answer.header.changed > 0;
  }

  /** @param prefix of the keys whose values are removed. Default: all. */
  async clear(prefix?: string): Promise<void> {
    const cache = this.#name;
    const answer =
      prefix === undefined
        ? await this.#ask(() => ({ op: 'clear', cache }))
        : await orNone(this.#open().askUntil({ op: 'clear', cache, prefix }, CLEAR_MS));
    this.#allStale ||= answer === undefined;
  }

  /**
   * Has a missing value computed by one process of the cluster; the others wait for it. If that one
   * fails or ends, the next one computes.
   *
   * @throws ClusterConfigurationError, and whatever `compute` throws.
   */
  async getOrCompute<T>(
    key: string,
    compute: () => Promise<T> | T,
    ttlMs: number | null,
  ): Promise<T> {
    checkTtl(key, ttlMs);
    const answer = await this.#ask((cache) => ({ op: 'get', cache, key }));
    const known = this.#valueIn(answer);
    if (known !== undefined) return known.value as T;
    const leased = await this.#lease(key, answer === undefined ? DOUBTED_LEASE_MS : LEASE_MS);
    if (leased !== undefined && 'value' in leased) return leased.value as T;
    const hub = this.#open();
    try {
      const value = await compute();
      const kept = await this.#write(key, value, (header, body) =>
        this.#ask(
          (cache) =>
            leased === undefined
              ? { op: 'set', cache, key, ttlMs, ...header }
              : { op: 'fill', cache, key, ttlMs, ...header, grant: leased.grant },
          body,
        ),
      );
      if (!kept && leased !== undefined) hub.tell({ op: 'unlock', grant: leased.grant });
      return value;
    } catch (error) {
      if (leased !== undefined) hub.tell({ op: 'unlock', grant: leased.grant });
      throw error;
    }
  }

  async #lease(
    key: string,
    waitMs: number,
  ): Promise<{ readonly value: unknown } | { readonly grant: number } | undefined> {
    try {
      const cache = this.#name;
      const answer = await this.#open().askUntil({ op: 'lease', cache, key, waitMs }, waitMs);
      if (answer?.header.t === 'granted') return { grant: answer.header.grant };
      return this.#valueIn(answer);
    } catch (error) {
      if (error instanceof HubError) return undefined;
      throw error;
    }
  }

  async #write(
    key: string,
    value: unknown,
    send: (header: { form: string; maxBytes: number }, body: Buffer) => Promise<Answer | undefined>,
  ): Promise<boolean> {
    const { form, body } = encode(value);
    const answer =
      body.length > MAX_BODY_BYTES
        ? undefined
        : await send({ form, maxBytes: this.#maxBytes }, body);
    if (answer?.header.t === 'done') {
      this.#count('evicted', answer.header.evicted);
      return true;
    }
    // The old value is wrong now.
    await this.delete(key);
    return false;
  }

  /** @returns `undefined` where the hub has not answered. What it refuses, it does not have either. */
  async #ask(
    question: (cache: string) => Parameters<HubClient['ask']>[0],
    body?: Buffer,
  ): Promise<Answer | undefined> {
    try {
      return await this.#open().ask(question(this.#name), DEADLINE_MS, body);
    } catch (error) {
      if (!(error instanceof HubError)) throw error;
      if (error.failure !== 'refused') return undefined;
      const why = error.message;
      if (why !== this.#warned)
        this.warn(`the cache '${this.#name}' does not keep a value: ${why}`);
      this.#warned = why;
      return { header: { t: 'refused', id: 0, why }, body: NO_BODY };
    }
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
      this.#hub.listen({
        opened: (anew) => this.#tellStale(anew),
        drained: () => this.#tellStale(false),
      });
    }
    return this.#hub;
  }

  /** Before anything else is asked. @param anew the hub is another one, and has no old values. */
  #tellStale(anew: boolean): void {
    const stale = [...this.#stale];
    const allStale = this.#allStale;
    this.#stale.clear();
    this.#allStale = false;
    if (anew) return;
    if (allStale) return void this.clear();
    for (const key of stale) void this.delete(key);
  }

  #noteStale(key: string): void {
    this.#stale.add(key);
    this.#allStale ||= this.#stale.size > MAX_STALE_KEYS;
    if (this.#allStale) this.#stale.clear();
  }
}

/** NaN in a frame would be a value without an end. @throws ClusterConfigurationError */
function checkTtl(key: string, ttlMs: number | null): void {
  if (ttlMs === null || (typeof ttlMs === 'number' && ttlMs >= 0)) return;
  throw new ClusterConfigurationError(
    `the value of '${oneLine(key).slice(0, 40)}' lives for ${ttlMs} ms; give 0 or more, or none`,
  );
}

/** Strings and bytes as they are; the rest as `postMessage()` copies it. */
function encode(value: unknown): { readonly form: string; readonly body: Buffer } {
  if (typeof value === 'string') return { form: 's', body: Buffer.from(value) };
  if (Buffer.isBuffer(value)) return { form: 'b', body: value };
  return { form: 'v', body: serialize(value) };
}

function decode(form: string, body: Buffer): unknown {
  if (form === 's') return body.toString();
  if (form === 'b') return Buffer.from(body);
  return deserialize(body);
}
