import { LRUCache } from 'lru-cache';
import type { HitRecord } from '../wire/protocol.js';

/** A request of one client, counted by one throttler of `@nestjs/throttler`. */
export interface Hit {
  readonly key: string;
  readonly ttl: number;
  readonly limit: number;
  readonly block: number;
  readonly throttler: string;
}

interface Client {
  expiresAt: number;
  blockExpiresAt: number;
  isBlocked: boolean;
  /** The times at which hits expire, by throttler, earliest first. */
  readonly hits: Map<string, number[]>;
}

/** Maximum number of clients. Above it, the least recently active client is removed. */
const MAX_CLIENTS = 200_000;

/**
 * Counts exactly like the in-memory storage of @nestjs/throttler 6: hits expire one by one, and a
 * client above its limit is blocked.
 */
export class Counters {
  /** Uses `maxSize`, because `max` would allocate memory for all clients at the start. */
  readonly #clients = new LRUCache<string, Client>({
    maxSize: MAX_CLIENTS,
    sizeCalculation: () => 1,
    perf: performance, // the same clock as for count()
    ttlResolution: 0,
  });

  /** @param now whole milliseconds of `performance.now()`. */
  count({ key, ttl, limit, block, throttler }: Hit, now: number): HitRecord {
    const client: Client = this.#clients.get(key, { allowStale: true }) ?? {
      expiresAt: now + ttl,
      blockExpiresAt: 0,
      isBlocked: false,
      hits: new Map(),
    };
    const hits = (client.hits.get(throttler) ?? []).filter((until) => until > now);
    client.hits.set(throttler, hits);
    let timeToExpire = seconds(client.expiresAt - now);
    if (timeToExpire <= 0) {
      client.expiresAt = now + ttl;
      timeToExpire = seconds(ttl);
    }
    const record =
      block <= 0
        ? slide(hits, { ttl, limit }, timeToExpire, now)
        : blockAbove(client, hits, { ttl, limit, block }, timeToExpire, now);
    const lasts = [...client.hits.values()].map((each) => each.at(-1) ?? 0);
    const until = Math.max(
      client.expiresAt,
      client.isBlocked ? client.blockExpiresAt : 0,
      ...lasts,
    );
    this.#clients.set(key, client, { ttl: until - now - 0.5 }); // stale from `until` on
    return record;
  }

  /** Removes clients whose hits and blocks have expired. */
  sweep(): void {
    this.#clients.purgeStale();
  }
}

/** Counts a hit without a block time. Above the limit, a client waits until its oldest hit expires. */
function slide(
  hits: number[],
  { ttl, limit }: Pick<Hit, 'ttl' | 'limit'>,
  timeToExpire: number,
  now: number,
): HitRecord {
  const isBlocked = hits.length >= limit;
  if (!isBlocked) add(hits, now + ttl);
  const soonest = hits.length > 0 ? seconds(hits[0]! - now) : timeToExpire;
  return {
    totalHits: hits.length + (isBlocked ? 1 : 0),
    timeToExpire,
    isBlocked,
    timeToBlockExpire: isBlocked ? soonest : 0,
  };
}

function blockAbove(
  client: Client,
  hits: number[],
  { ttl, limit, block }: Pick<Hit, 'ttl' | 'limit' | 'block'>,
  timeToExpire: number,
  now: number,
): HitRecord {
  if (!client.isBlocked) add(hits, now + ttl);
  if (hits.length > limit && !client.isBlocked) {
    client.isBlocked = true;
    client.blockExpiresAt = now + block;
  }
  const timeToBlockExpire = seconds(client.blockExpiresAt - now);
  if (timeToBlockExpire <= 0 && client.isBlocked) {
    client.isBlocked = false;
    hits.length = 0;
    add(hits, now + ttl);
  }
  const { isBlocked } = client;
  return { totalHits: hits.length, timeToExpire, isBlocked, timeToBlockExpire };
}

/** Inserts a hit in order of expiry: if `ttl` varies, a new hit may expire before older hits. */
function add(hits: number[], until: number): void {
  const later = hits.findLastIndex((each) => each <= until) + 1;
  hits.splice(later, 0, until);
}

function seconds(ms: number): number {
  return Math.ceil(ms / 1_000);
}
