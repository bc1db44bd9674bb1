import {
  Inject,
  Injectable,
  Logger,
  type OnApplicationShutdown,
  type OnModuleInit,
  Optional,
  ServiceUnavailableException,
} from '@nestjs/common';
import * as v from 'valibot';
import type { ThrottlerStorage } from '@nestjs/throttler';
import { machineNow } from '../machine.js';
import {
  durationMs, messageOf,
  validate,
} from '../options.js';
import { extension } from 'nestjs-cluster/extension';
import type { HubClient } from '../client/hub-client.js';
import { hubOf, THREAD } from '../client/hub-of-process.js';
import { Counters, type Hit } from '../thread/services/counters.js';
import type { HitRecord } from '../wire/protocol.js';

/** The possible decisions about a request that the hub has not counted in time. */
const DECISIONS = ['local', 'refuse', 'allow'] as const;
type Decision = (typeof DECISIONS)[number];

/** Options of `ClusterThrottlerStorage`. */
export interface ClusterThrottlerOptions {
  /** How long a request waits for the hub, 1..2^31-1 ms. Default: 1,000. */
  readonly deadlineMs?: number | undefined;
  /**
   * The decision about a request if the hub does not answer in time. `local`: this worker counts
   * the request by itself, so a client may send up to the limit to each worker. `refuse`: the
   * request is answered with 503. `allow`: the request passes without a limit. Default: `local`.
   */
  readonly onHubSilent?: Decision | undefined;
}

/** No module provides this token, so Nest creates the class with the default options. */
const OPTIONS = Symbol('nestjs-cluster.throttler-options');

const optionsSchema = v.strictObject({
  deadlineMs: v.optional(durationMs(1), 1_000),
  onHubSilent: v.optional(v.picklist(DECISIONS, `one of ${DECISIONS.join(', ')}`), 'local'),
});

/** How long the app's start waits for the hub, in ms, so that the hub counts from the first request on. */
const START_MS = 3_000;

const SWEEP_MS = 60_000;
const QUIET_MS = 60_000;

const CONSEQUENCES: Record<Decision, string> = {
  local: 'this worker counts them by itself, and a client may send up to the limit to each worker',
  refuse: 'they are answered with 503',
  allow: 'they pass without being limited',
};

/**
 * Counts the requests of all workers together. Use it as the `storage` of `ThrottlerModule`. It
 * counts like the storage in memory that it replaces. Without a primary it counts in this process.
 *
 * If the hub does not answer in time, `onHubSilent` decides. The log says so once a minute, and
 * `nestjs_cluster_throttler_unanswered_total` counts such requests.
 */
@Injectable()
export class ClusterThrottlerStorage
  implements ThrottlerStorage, OnModuleInit, OnApplicationShutdown
{
  /** Counts of this worker alone, for requests that the hub has not counted. */
  readonly #local = new Counters();
  readonly #logger = new Logger('ClusterThrottlerStorage');
  #quietUntil = 0;
  readonly #options: { readonly deadlineMs: number; readonly onHubSilent: Decision };
  #hub: HubClient | undefined;
  #sweeping: NodeJS.Timeout | undefined;

  /** @throws ClusterConfigurationError */
  constructor(@Optional() @Inject(OPTIONS) options?: ClusterThrottlerOptions) {
    this.#options = validate(optionsSchema, options ?? {}, 'ClusterThrottlerStorage');
  }

  async onModuleInit(): Promise<void> {
    await this.#open()?.ready(START_MS);
  }

  onApplicationShutdown(): void {
    clearInterval(this.#sweeping);
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
    const hub = this.#open();
    if (hub === undefined) return this.#countHere(hit);
    try {
      const question = { op: 'count', ...hit, at: machineNow() } as const;
      const { header } = await hub.ask(question, this.#options.deadlineMs);
      const { totalHits, timeToExpire, isBlocked, timeToBlockExpire } = header as HitRecord &
        object;
      return { totalHits, timeToExpire, isBlocked, timeToBlockExpire };
    } catch (error) {
      return this.#decide(hub, hit, messageOf(error));
    }
  }

  #decide(hub: HubClient, hit: Hit, why: string): HitRecord {
    const { onHubSilent } = this.#options;
    hub.noteOutcome('throttler', onHubSilent);
    const now = performance.now();
    if (now >= this.#quietUntil) {
      this.#quietUntil = now + QUIET_MS;
      this.#logger.warn(`requests are not counted together: ${why}; ${CONSEQUENCES[onHubSilent]}`);
    }
    if (onHubSilent === 'local') return this.#countHere(hit);
    if (onHubSilent === 'refuse') {
      throw new ServiceUnavailableException('the rate limit cannot be checked now');
    }
    return { totalHits: 0, timeToExpire: 0, isBlocked: false, timeToBlockExpire: 0 };
  }

  /**
   * The client of the hub; `undefined` without a primary, so that each app counts by itself. A hub
   * inside this process would carry the counts of one app over to the next app of a test.
   */
  #open(): HubClient | undefined {
    if (this.#hub === undefined) {
      if (extension()?.thread(THREAD) !== undefined) this.#hub = hubOf();
    }
    return this.#hub;
  }

  #countHere(hit: Hit): HitRecord {
    this.#sweeping ??= setInterval(() => this.#local.sweep(machineNow()), SWEEP_MS).unref();
    return this.#local.count(hit, Math.floor(machineNow()));
  }
}
