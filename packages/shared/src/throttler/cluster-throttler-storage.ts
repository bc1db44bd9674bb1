import {
  Inject,
  Injectable,
  Logger,
  type OnModuleInit,
  Optional,
  ServiceUnavailableException,
} from '@nestjs/common';
import type { ThrottlerStorage } from '@nestjs/throttler';
import { extension } from 'nestjs-cluster/extension';
import * as v from 'valibot';
import type { HubClient } from '../client/hub-client.js';
import { hubOf, THREAD } from '../client/hub-of-process.js';
import { messageOf, validate } from '../options.js';
import { Counters, type Hit } from '../thread/counters.js';
import type { HitRecord } from '../wire/protocol.js';

/** Options of `ClusterThrottlerStorage`. */
export interface ClusterThrottlerOptions {
  /**
   * The decision about a request that the hub does not count within a second. `local`: this worker
   * counts the request by itself, so a client may send up to the limit to each worker. `refuse`: the
   * request is answered with 503. Default: `local`.
   */
  readonly onHubSilent?: 'local' | 'refuse' | undefined;
}

/** No module provides this token, so Nest creates the class with the default options. */
const OPTIONS = Symbol('nestjs-cluster.throttler-options');

const optionsSchema = v.strictObject({
  onHubSilent: v.optional(v.picklist(['local', 'refuse'], "'local' or 'refuse'"), 'local'),
});

const DEADLINE_MS = 1_000;

/** How long the app's start waits for the hub, in ms, so that the hub counts from the first request on. */
const START_MS = 3_000;

/** Warns at most once in this time, in ms. */
const QUIET_MS = 60_000;

const CONSEQUENCES = {
  local: 'this worker counts them by itself, and a client may send up to the limit to each worker',
  refuse: 'they are answered with 503',
};

/**
 * Counts the requests of all workers together. Use it as the `storage` of `ThrottlerModule`. It
 * counts like the storage in memory that it replaces. Without a primary it counts in this process.
 *
 * If the hub does not answer in time, `onHubSilent` decides. The log says so once a minute.
 */
@Injectable()
export class ClusterThrottlerStorage implements ThrottlerStorage, OnModuleInit {
  /** Counts of this worker alone, for requests that the hub has not counted. */
  readonly #local = new Counters();
  readonly #logger = new Logger('ClusterThrottlerStorage');
  readonly #onHubSilent: 'local' | 'refuse';
  #quietUntil = 0;
  #found: HubClient | undefined;

  /** @throws ClusterConfigurationError */
  constructor(@Optional() @Inject(OPTIONS) options?: ClusterThrottlerOptions) {
    const subject = 'options of ClusterThrottlerStorage';
    this.#onHubSilent = validate(optionsSchema, options ?? {}, subject).onHubSilent;
  }

  async onModuleInit(): Promise<void> {
    await this.#hub?.ready(START_MS);
  }

  /**
   * Called by the guard of @nestjs/throttler.
   *
   * @param ttl in ms, like `blockDuration`.
   * @throws ServiceUnavailableException if the hub is silent and `onHubSilent` is `refuse`.
   */
  async increment(
    key: string,
    ttl: number,
    limit: number,
    blockDuration: number,
    throttlerName: string,
  ): Promise<HitRecord> {
    const hit: Hit = { key, ttl, limit, block: blockDuration, throttler: throttlerName };
    const hub = this.#hub;
    if (hub === undefined) return this.#countHere(hit);
    try {
      const { header } = await hub.ask({ op: 'count', ...hit }, DEADLINE_MS);
      const { totalHits, timeToExpire, isBlocked, timeToBlockExpire } = header as HitRecord &
        object;
      return { totalHits, timeToExpire, isBlocked, timeToBlockExpire };
    } catch (error) {
      this.#warn(messageOf(error));
      if (this.#onHubSilent === 'local') return this.#countHere(hit);
      throw new ServiceUnavailableException('the rate limit cannot be checked now');
    }
  }

  #warn(why: string): void {
    const now = performance.now();
    if (now < this.#quietUntil) return;
    this.#quietUntil = now + QUIET_MS;
    const consequence = CONSEQUENCES[this.#onHubSilent];
    this.#logger.warn(`requests are not counted together: ${why}; ${consequence}`);
  }

  /**
   * The client of the hub; `undefined` without a primary, so that each app counts by itself. A hub
   * inside this process would carry the counts of one app over to the next app of a test.
   */
  get #hub(): HubClient | undefined {
    if (extension()?.thread(THREAD) === undefined) return undefined;
    return (this.#found ??= hubOf());
  }

  #countHere(hit: Hit): HitRecord {
    return this.#local.count(hit, Math.floor(performance.now()));
  }
}
