import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import type { ThrottlerStorage } from '@nestjs/throttler';
import { currentLink } from '../../bootstrap/current-link.js';
import type { HubClient } from '../../hub/client/hub-client.js';
import { hubOf } from '../../hub/client/hub-of-process.js';
import type { HitRecord } from '../../hub/protocol.js';
import { Counters, type Hit } from '../../hub/services/counters.js';

/** A request waits no longer for the hub. */
const DEADLINE_MS = 50;

/** The first worker has the hub's thread started, and its first requests are to be counted there. */
const START_MS = 3_000;

const SWEEP_MS = 60_000;

/**
 * Counts the requests of all workers together. `ThrottlerModule` takes it as its `storage`. It counts as
 * the storage in memory does that it replaces; without a primary, in this process.
 *
 * While the hub does not answer within 50 ms, a worker counts by itself: then a client may send up
 * to the limit to each of them, and `nestjs_cluster_throttler_local_total` counts.
 */
@Injectable()
export class ClusterThrottlerStorage
  implements ThrottlerStorage, OnModuleInit, OnApplicationShutdown
{
  /** What this worker counts by itself. */
  readonly #local = new Counters();
  #hub: HubClient | undefined;
  #sweeping: NodeJS.Timeout | undefined;

  async onModuleInit(): Promise<void> {
    await this.#open()?.ready(START_MS);
  }

  onApplicationShutdown(): void {
    clearInterval(this.#sweeping);
    this.#local.clear();
  }

  /** Called by the guard of @nestjs/throttler. @param ttl and `blockDuration` in ms. */
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
      const { header } = await hub.ask({ op: 'count', ...hit }, DEADLINE_MS);
      const { totalHits, timeToExpire, isBlocked, timeToBlockExpire } = header as HitRecord &
        object;
      return { totalHits, timeToExpire, isBlocked, timeToBlockExpire };
    } catch {
      // Why not is counted as the outcome of the request to the hub.
      hub.noteOutcome('throttler', 'local');
      return this.#countHere(hit);
    }
  }

  /** Alone it counts by itself: an app of a test must not find what the one before it has counted. */
  #open(): HubClient | undefined {
    if (this.#hub === undefined) {
      const link = currentLink();
      if (link?.findHub() !== undefined) this.#hub = hubOf(link);
    }
    return this.#hub;
  }

  #countHere(hit: Hit): HitRecord {
    this.#sweeping ??= setInterval(() => this.#local.sweep(now()), SWEEP_MS).unref();
    return this.#local.count(hit, now());
  }
}

function now(): number {
  return Math.floor(performance.now());
}
