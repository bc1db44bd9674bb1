import { machineMs } from './machine-clock.js';
import { CacheShelf } from '../thread/services/cache-shelf.js';
import { Channels } from '../thread/services/channels.js';
import { Counters } from '../thread/services/counters.js';
import { type Asker, type LockAnswer, Locks } from '../thread/services/locks.js';
import { Post } from '../thread/services/post.js';
import type { FromHub, HubRequest, ToHub } from './protocol.js';

/** The way to one worker. */
export interface Peer {
  slot: number;
  /** It does not read what it is sent. */
  readonly congested: boolean;
  /** Bytes that it has not read. */
  readonly unsentBytes: number;
  /** @param body a view: what is kept of it is copied. */
  send(header: FromHub, body?: Buffer): void;
}

interface HubAsker extends Asker<Peer> {
  /** It asks for the lease of a value, not for a lock. */
  readonly lease?: { readonly cache: string; readonly key: string };
}

/** Everything but the first word, which says who speaks. */
export type Said = Exclude<ToHub, { op: 'hello' }>;

/** What workers share. It knows neither sockets nor threads: the same runs in a process that has no primary. */
export class HubCore {
  readonly #locks: Locks<Peer, HubAsker>;
  readonly #leases: Locks<Peer, HubAsker>;
  readonly #counters = new Counters();
  readonly #caches: CacheShelf;
  readonly #post = new Post<Peer>();
  readonly #channels = new Channels<Peer>();

  /**
   * @param closedUntil until then locks are only given to those who held them before.
   * @param clock that of the machine, which workers read as well.
   * @param maxCacheBytes of all caches together.
   */
  constructor(
    closedUntil?: number,
    private readonly clock: () => number = machineMs,
    maxCacheBytes?: number,
  ) {
    this.#caches = new CacheShelf(maxCacheBytes);
    // Grants go on where those of the hub before cannot have come: it gave less than one a microsecond.
    const firstGrant = Math.floor(this.clock() * 1_000);
    this.#locks = new Locks(closedUntil, undefined, firstGrant);
    // Their numbers are never those of locks.
    this.#leases = new Locks(undefined, undefined, 2 ** 52 + firstGrant);
  }

  /** @param body a view: what is kept of it is copied. */
  receive(from: Peer, said: Said, body: Buffer): void {
    const now = this.clock();
    switch (said.op) {
      case 'lock': {
        const asker = { peer: from, id: said.id };
        return this.#answer(
          said.reclaim === true
            ? this.#locks.reclaim(said.name, asker, now)
            : this.#locks.acquire(said.name, asker, said.waitMs, now),
        );
      }
      case 'unlock':
        this.#answer(this.#locks.release(said.grant, from, now));
        return this.#answer(this.#leases.release(said.grant, from, now));
      case 'cancel':
        this.#post.cancel(from, said.id);
        this.#locks.cancel(said.id, from);
        return this.#leases.cancel(said.id, from);
      case 'count':
        return from.send({
          t: 'counted',
          id: said.id,
          ...this.#counters.count(said, Math.floor(Math.min(said.at ?? now, now))),
        });
      case 'get':
        return this.#give(from, said, now);
      case 'set':
        if (!this.#keep(from, said, body, now)) return;
        return this.#answer(this.#leases.revokeOne(leaseOf(said), now));
      case 'fill':
        // What was computed before its key was set or deleted is old.
        if (!this.#leases.holds(leaseOf(said), said.grant, from)) {
          return from.send({ t: 'void', id: said.id });
        }
        if (this.#keep(from, said, body, now)) this.#endLease(from, said, body, now);
        return;
      case 'delete': {
        const changed = this.#caches.delete(said, now) ? 1 : 0;
        from.send({ t: 'done', id: said.id, changed, evicted: 0 });
        return this.#answer(this.#leases.revokeOne(leaseOf(said), now));
      }
      case 'clear': {
        const { cache, prefix } = said;
        const beginning = leaseOf({ cache, key: prefix ?? '' });
        if (prefix === undefined) {
          this.#caches.clear(cache);
          from.send({ t: 'done', id: said.id, changed: 0, evicted: 0 });
        } else this.#clearPrefix(from, { id: said.id, cache, prefix });
        return this.#answer(this.#leases.revoke((name) => name.startsWith(beginning), now));
      }
      case 'keys':
        return from.send({ t: 'keys', id: said.id, ...this.#caches.keys(said, now) });
      case 'lease': {
        const { id, cache, key } = said;
        if (this.#caches.has(said, now)) return this.#give(from, said, now);
        const asker = { peer: from, id, lease: { cache, key } };
        return this.#answer(this.#leases.acquire(leaseOf(said), asker, said.waitMs, now));
      }
      case 'stats':
        return from.send({ t: 'stats', id: said.id, caches: this.#caches.stats() });
      case 'subscribe':
        if (said.leaving === true) this.#post.stepAside(from);
        else this.#post.add(from);
        return from.send({ t: 'done', id: said.id, changed: 1, evicted: 0 });
      case 'unsubscribe':
        this.#post.remove(from);
        return from.send({ t: 'done', id: said.id, changed: 1, evicted: 0 });
      case 'publish':
        return this.#post.publish(from, said, body, now);
      case 'reply':
        return this.#post.reply(from, said, body);
      case 'join':
        this.#channels.join(from, said);
        return from.send({ t: 'done', id: said.id, changed: 1, evicted: 0 });
      case 'part':
        return this.#channels.part(from, said);
      case 'say':
        return this.#channels.say(from, said, body, now);
      case 'missed':
        return this.#channels.missed(from, said);
    }
  }

  /** The worker has read some of what it was sent. */
  drained(peer: Peer): void {
    this.#post.drained(peer);
  }

  /** The worker is gone: others get what it held. */
  leave(peer: Peer): void {
    for (const { by, id } of this.#post.leave(peer)) refuse(by, { id }, 'its worker is gone');
    this.#channels.remove(peer);
    this.#answer(this.#locks.leave(peer, this.clock()));
    this.#answer(this.#leases.leave(peer, this.clock()));
  }

  /** Workers that held a lock have had the time to say so. */
  open(): void {
    this.#answer(this.#locks.open(this.clock()));
  }

  /** Now and then: forgets what is over. */
  sweep(): void {
    const now = this.clock();
    this.#counters.sweep(Math.floor(now));
    this.#caches.sweep(now);
    this.#channels.sweep(now);
    this.#post.sweep(now);
  }

  /** Others are answered between its parts: a large cache takes a quarter of a second. */
  #clearPrefix(to: Peer, at: { id: number; cache: string; prefix: string }, part = 0): void {
    const next = this.#caches.clearPrefix(at.cache, at.prefix, part);
    if (next !== 0) setImmediate(() => this.#clearPrefix(to, at, next));
    else to.send({ t: 'done', id: at.id, changed: 0, evicted: 0 });
  }

  /** @returns whether it has said that it is done; else why not. */
  #keep(
    from: Peer,
    said: Extract<Said, { op: 'set' | 'fill' }>,
    body: Buffer,
    now: number,
  ): boolean {
    const evicted = this.#caches.set(said, body, now);
    if (typeof evicted === 'string') {
      refuse(from, said, evicted);
      return false;
    }
    from.send({ t: 'done', id: said.id, changed: 1, evicted });
    return true;
  }

  /** A value that is not kept, since it is too large, is given to those who wait for it all the same. */
  #endLease(
    from: Peer,
    { form, grant, ...at }: Extract<Said, { op: 'fill' }>,
    body: Buffer,
    now: number,
  ): void {
    if (this.#caches.has(at, now)) return this.#answer(this.#leases.release(grant, from, now));
    for (const { peer, id } of this.#leases.dismiss(grant, from, now)) {
      peer.send({ t: 'hit', id, form }, body);
    }
  }

  #give(to: Peer, at: { id: number; cache: string; key: string }, now: number): void {
    const entry = this.#caches.get(at, now);
    if (entry === undefined) to.send({ t: 'miss', id: at.id });
    else to.send({ t: 'hit', id: at.id, form: entry.form }, entry.value);
  }

  /** One after the other: a lease that is not needed any more goes on to the next. */
  #answer(answers: LockAnswer<Peer, HubAsker>[]): void {
    const now = this.clock();
    for (let next = answers.shift(); next !== undefined; next = answers.shift()) {
      const { peer, id, lease } = next.asker;
      if (next.type === 'full') refuse(peer, next.asker, 'too many wait for locks');
      else if (next.type === 'expired') peer.send({ t: 'expired', id });
      else if (lease === undefined || !this.#caches.has(lease, now)) {
        peer.send({ t: 'granted', id, grant: next.grant });
      } else {
        this.#give(peer, { id, ...lease }, now);
        answers.push(...this.#leases.release(next.grant, peer, now));
      }
    }
  }
}

/** Both may hold any character: the length says where the name of the cache ends. */
function leaseOf({ cache, key }: { readonly cache: string; readonly key: string }): string {
  return `${cache.length} ${cache}${key}`;
}

/** @param to is told that its request cannot be served. */
export function refuse(to: Peer, { id }: Pick<HubRequest, 'id'>, why: string): void {
  to.send({ t: 'refused', id, why });
}
