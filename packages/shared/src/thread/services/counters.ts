import { LRUCache } from 'lru-cache';
import type { HitRecord } from '../../wire/protocol.js';

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

/** Maximum number of clients. Beyond it, the client that was silent for the longest time is forgotten. */
const MAX_CLIENTS = 200_000;

/** Maximum number of hits of all clients together. Beyond it, the longest silent client is forgotten. */
const MAX_HITS = 4_000_000;

/** How many clients one sweep checks, beginning with the longest silent client. */
const SWEPT = 1_000;

/**
 * Counts exactly as the storage in memory of @nestjs/throttler 6: hits expire one by one, and a
 * client above its limit is blocked. Callers pass the current time.
 */
export class Counters {
  readonly #clients: LRUCache<string, Client>;
  #hits = 0;

  constructor(
    maxClients = MAX_CLIENTS,
    private readonly maxHits = MAX_HITS,
  ) {
    this.#clients = new LRUCache({
      maxSize: maxClients, // `max` would allocate the lists of all clients at once
      sizeCalculation: () => 1,
      dispose: ({ hits }) => {
        for (const each of hits.values()) this.#hits -= each.length;
      },
    });
  }

  /** @param now whole milliseconds, monotonic. */
  count({ key, ttl, limit, block, throttler }: Hit, now: number): HitRecord {
    const client = this.#clientOf(key, now + ttl);
    const hits = this.#live(client, throttler, now);
    let timeToExpire = seconds(client.expiresAt - now);
    if (timeToExpire <= 0) {
      client.expiresAt = now + ttl;
      timeToExpire = seconds(ttl);
    }
    const record =
      block <= 0
        ? this.#slide(hits, { ttl, limit }, timeToExpire, now)
        : this.#block(client, throttler, { ttl, limit, block }, timeToExpire, now);
    while (this.#hits > this.maxHits && this.#clients.size > 1) this.#clients.pop();
    return record;
  }

  /** Forgets clients whose hits and blocks have expired. */
  sweep(now: number): void {
    let left = SWEPT;
    for (const key of this.#clients.rkeys()) {
      if (left-- === 0) return;
      const client = this.#clients.peek(key)!;
      const lastHit = Math.max(...[...client.hits.values()].map((hits) => hits.at(-1) ?? 0));
      const blocked = client.isBlocked && client.blockExpiresAt > now;
      if (!blocked && client.expiresAt <= now && lastHit <= now) this.#clients.delete(key);
    }
  }

  get size(): number {
    return this.#clients.size;
  }

  #clientOf(key: string, expiresAt: number): Client {
    const known = this.#clients.get(key);
    if (known !== undefined) return known;
    const client = {
      expiresAt,
      blockExpiresAt: 0,
      isBlocked: false,
      hits: new Map<string, number[]>(),
    };
    this.#clients.set(key, client);
    return client;
  }

  #live(client: Client, throttler: string, now: number): number[] {
    const hits = client.hits.get(throttler) ?? [];
    let over = 0;
    while (over < hits.length && hits[over]! <= now) over += 1;
    if (over > 0) hits.splice(0, over);
    this.#hits -= over;
    client.hits.set(throttler, hits);
    return hits;
  }

  /** Counts without a block time: above the limit, a client waits for its oldest hit to expire. */
  #slide(
    hits: number[],
    { ttl, limit }: Pick<Hit, 'ttl' | 'limit'>,
    timeToExpire: number,
    now: number,
  ): HitRecord {
    const isBlocked = hits.length >= limit;
    if (!isBlocked) this.#add(hits, now + ttl);
    const soonest = hits.length > 0 ? seconds(hits[0]! - now) : timeToExpire;
    return {
      totalHits: hits.length + (isBlocked ? 1 : 0),
      timeToExpire,
      isBlocked,
      timeToBlockExpire: isBlocked ? soonest : 0,
    };
  }

  #block(
    client: Client,
    throttler: string,
    { ttl, limit, block }: Pick<Hit, 'ttl' | 'limit' | 'block'>,
    timeToExpire: number,
    now: number,
  ): HitRecord {
    const hits = client.hits.get(throttler)!;
    if (!client.isBlocked) this.#add(hits, now + ttl);
    if (hits.length > limit && !client.isBlocked) {
      client.isBlocked = true;
      client.blockExpiresAt = now + block;
    }
    const timeToBlockExpire = seconds(client.blockExpiresAt - now);
    if (timeToBlockExpire <= 0 && client.isBlocked) {
      client.isBlocked = false;
      this.#hits -= hits.length;
      hits.length = 0;
      this.#add(hits, now + ttl);
    }
    const { isBlocked } = client;
    return { totalHits: hits.length, timeToExpire, isBlocked, timeToBlockExpire };
  }

  /** Keeps hits sorted: if `ttl` varies, a new hit may expire before older hits. */
  #add(hits: number[], until: number): void {
    let at = hits.length;
    while (at > 0 && hits[at - 1]! > until) at -= 1;
    if (at === hits.length) hits.push(until);
    else hits.splice(at, 0, until);
    this.#hits += 1;
  }
}

function seconds(ms: number): number {
  return Math.ceil(ms / 1_000);
}
