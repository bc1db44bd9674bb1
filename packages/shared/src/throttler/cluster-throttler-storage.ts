import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import type { ThrottlerStorage } from '@nestjs/throttler';
import { extension } from 'nestjs-cluster/extension';
import type { HubClient } from '../client/hub-client.js';
import { hubOf, THREAD } from '../client/hub-of-process.js';
import { messageOf } from '../options.js';
import { Counters, type Hit } from '../thread/counters.js';
import type { HitRecord } from '../wire/protocol.js';

/** How long a request waits for the hub, in ms. */
const DEADLINE_MS = 1_000;

/** How long the app's startup waits for the hub, in ms, so that the hub counts even the first request. */
const START_MS = 3_000;

/** Minimum time between two warnings, in ms. */
const QUIET_MS = 60_000;

/**
 * Counts the requests of all workers together. Use it as the `storage` of `ThrottlerModule`. It
 * counts like the in-memory storage that it replaces. Without a primary it counts in this process.
 *
 * If the hub does not count a request within a second, this worker counts it locally, so a client may
 * send up to the limit to each worker. A warning is logged at most once a minute.
 */
@Injectable()
export class ClusterThrottlerStorage implements ThrottlerStorage, OnModuleInit {
  /** Local counts, for requests that the hub has not counted. */
  readonly #local = new Counters();
  readonly #logger = new Logger('ClusterThrottlerStorage');
  #quietUntil = 0;
  #found: HubClient | undefined;

  async onModuleInit(): Promise<void> {
    await this.#hub?.ready(START_MS);
  }

  /**
   * Called by the guard of @nestjs/throttler.
   *
   * @param ttl in ms, like `blockDuration`.
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
      return this.#countHere(hit);
    }
  }

  #warn(why: string): void {
    const now = performance.now();
    if (now < this.#quietUntil) return;
    this.#quietUntil = now + QUIET_MS;
    this.#logger.warn(
      `the hub cannot count requests: ${why}; this worker counts them locally, so a client may use the full limit on each worker`,
    );
  }

  /**
   * The hub's client; `undefined` without a primary, so that each app counts for itself. An
   * in-process hub would carry counts over from one app of a test to the next.
   */
  get #hub(): HubClient | undefined {
    if (extension()?.thread(THREAD) === undefined) return undefined;
    return (this.#found ??= hubOf());
  }

  #countHere(hit: Hit): HitRecord {
    return this.#local.count(hit, Math.floor(performance.now()));
  }
}
