import type { HitRecord } from '../../wire/protocol.js';
import { Recency } from './recency.js';

/** One `@nestjs/throttler` of one client. */
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
  /** When each hit that counts ceases to, soonest first; by throttler. */
  readonly hits: Map<string, number[]>;
}

/** Clients that are remembered. Who has not come for the longest time is forgotten first. */
const MAX_CLIENTS = 200_000;

/** Hits that are remembered, of all clients. */
const MAX_HITS = 4_000_000;

/** Records that a sweep looks at, of those who have not come for the longest time. */
const SWEPT = 1_000;

/**
 * Counts as the storage in memory of @nestjs/throttler 6 does, to the number: a sliding log of
 * hits, and a client that is over its limit is blocked. Without a clock.
 */
export class Counters {
  readonly #clients = new Recency<Client>();
  #hits = 0;

  constructor(
    private readonly maxClients = MAX_CLIENTS,
    private readonly maxHits = MAX_HITS,
  ) {}

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
    this.#bound();
    return record;
  }

  /** Forgets clients that came so long ago that nothing of them counts. */
  sweep(now: number): void {
    let left = SWEPT;
    for (const [key, client] of this.#clients.all()) {
      if (left-- === 0) return;
      const lastHit = Math.max(...[...client.hits.values()].map((hits) => hits.at(-1) ?? 0));
      const blocked = client.isBlocked && client.blockExpiresAt > now;
      if (!blocked && client.expiresAt <= now && lastHit <= now) this.#forget(key, client);
    }
  }

  clear(): void {
    this.#clients.clear();
    this.#hits = 0;
  }

  get size(): number {
    return this.#clients.size;
  }

  #clientOf(key: string, expiresAt: number): Client {
    const known = this.#clients.use(key);
    if (known !== undefined) return known;
    const client = {
      expiresAt,
      blockExpiresAt: 0,
      isBlocked: false,
      hits: new Map<string, number[]>(),
    };
    this.#clients.add(key, client);
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

  /** Over the limit nobody is blocked: the oldest hit makes room for one more when it is over. */
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

  /** A `ttl` that varies brings hits that are over before others. */
  #add(hits: number[], until: number): void {
    let at = hits.length;
    while (at > 0 && hits[at - 1]! > until) at -= 1;
    if (at === hits.length) hits.push(until);
    else hits.splice(at, 0, until);
    this.#hits += 1;
  }

  #bound(): void {
    while (
      this.#clients.size > this.maxClients ||
      (this.#hits > this.maxHits && this.#clients.size > 1)
    ) {
      const [key, client] = this.#clients.oldest!;
      this.#forget(key, client);
    }
  }

  #forget(key: string, client: Client): void {
    for (const hits of client.hits.values()) this.#hits -= hits.length;
    this.#clients.delete(key);
  }
}

function seconds(ms: number): number {
  return Math.ceil(ms / 1_000);
}
