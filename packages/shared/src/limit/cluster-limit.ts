import * as v from 'valibot';
import { durationMs, integer, text, validate } from '../options.js';
import { HubError } from '../client/hub-client.js';
import { hubOf } from '../client/hub-of-process.js';
import { ClusterLimitException } from '../errors.js';
import { type HeldLock, HeldLocks, refuseThread } from '../lock/held-locks.js';

/** Options of a `ClusterLimit`. */
export interface ClusterLimitOptions {
  /** How many calls may run at once per key, across all workers: 1..100,000. */
  readonly max: number;
  /** How many calls may wait per key, across all workers: 0..100,000. Default: `max`. */
  readonly maxWaiting?: number | undefined;
  /** How long a call waits, 0..2^31-1 ms. With 0, a call does not wait. Default: 1,000. */
  readonly waitMs?: number | undefined;
}

/** An Express or Fastify response. */
export interface LimitedResponse {
  header(name: string, value: string): unknown;
}

const MOST = 100_000;
const optionsSchema = v.strictObject({
  max: integer(1, MOST),
  maxWaiting: v.optional(integer(0, MOST), undefined),
  waitMs: v.optional(durationMs(), 1_000),
});

/**
 * Lets at most `max` calls per key, such as a tenant, run at once across all workers of the
 * cluster. Instances with the same name share their places. Without a primary, a limit applies only
 * to this process.
 */
export class ClusterLimit {
  readonly #limit: { readonly name: string; readonly max: number; readonly maxWaiting: number };
  readonly #waitMs: number;
  /** Connected on first use, because an instance may be created where no app runs. */
  #held: HeldLocks | undefined;

  /**
   * @param name 1 to 1,024 characters.
   * @throws ClusterConfigurationError
   */
  constructor(name: string, options: ClusterLimitOptions) {
    validate(text(), name, 'name of a limit');
    const {
      max,
      maxWaiting = max,
      waitMs,
    } = validate(optionsSchema, options ?? {}, 'ClusterLimit');
    this.#limit = { name, max, maxWaiting };
    this.#waitMs = waitMs;
  }

  /**
   * Runs `fn` when a place for `key` is free. Calls get places in order of arrival. The place is
   * free again when `fn` or its process ends.
   *
   * @param key 1 to 1,024 characters. A key never conflicts with keys of other limits or with names
   *   of locks.
   * @param fn gets a signal that is aborted if the place is lost while `fn` runs.
   * @param response gets the header `Retry-After` if the call is refused.
   * @throws ClusterLimitException if no place is free in time, ClusterConfigurationError for a
   *   wrong key or in a thread, and any error from `fn`.
   */
  async run<T>(
    key: string,
    fn: (signal: AbortSignal) => Promise<T> | T,
    response?: LimitedResponse,
  ): Promise<T> {
    validate(text(), key, 'key of a limit');
    refuseThread('run', key);
    const held = (this.#held ??= new HeldLocks(hubOf()));
    const place = await this.#enter(held, key, response);
    try {
      return await fn(place.signal);
    } finally {
      held.release(place);
    }
  }

  async #enter(held: HeldLocks, key: string, response?: LimitedResponse): Promise<HeldLock> {
    const limit = this.#limit;
    let cause: HubError | undefined;
    try {
      const place = await held.acquire({ name: key, limit }, this.#waitMs);
      if (place !== undefined) return place;
    } catch (error) {
      if (!(error instanceof HubError)) throw error;
      cause = error;
    }
    const refusal = new ClusterLimitException(limit.name, key, cause);
    response?.header('Retry-After', String(refusal.retryAfterSeconds));
    throw refusal;
  }
}
