import type { RequestOf } from '../../wire/protocol.js';
import { Caches } from './caches.js';
import { type LockAnswer, type LockRequest, Locks } from './locks.js';
import { type Peer, refuse } from './peer.js';

interface LeaseRequest extends LockRequest<Peer> {
  readonly cache: string;
  readonly key: string;
}

type CacheRequest = RequestOf<
  'get' | 'set' | 'fill' | 'delete' | 'clear' | 'keys' | 'lease' | 'stats'
>;

/** Caches, and leases: the peer with the lease of a key computes its value while others wait for it. */
export class CacheService {
  readonly #caches: Caches;
  readonly #leases: Locks<Peer, LeaseRequest>;

  /**
   * @param lastGrant see {@link Locks}.
   * @param maxBytes the limit for all caches together.
   */
  constructor(lastGrant: number, maxBytes?: number) {
    this.#caches = new Caches(maxBytes);
    this.#leases = new Locks(undefined, undefined, lastGrant);
  }

  /** @param body a view: it is copied if it is kept. */
  receive(from: Peer, request: CacheRequest, body: Buffer, now: number): void {
    switch (request.op) {
      case 'get':
        return this.#give(from, request, now);
      case 'set':
        if (!this.#keep(from, request, body, now)) return;
        return this.#answer(this.#leases.revokeOne(leaseOf(request), now), now);
      case 'fill':
        // The key was set or deleted since the lease was granted, so the computed value is old.
        if (!this.#leases.holds(leaseOf(request), request.grant, from)) {
          return from.send({ t: 'void', id: request.id });
        }
        if (this.#keep(from, request, body, now)) this.#endLease(from, request, body, now);
        return;
      case 'delete': {
        const changed = this.#caches.delete(request, now) ? 1 : 0;
        from.send({ t: 'done', id: request.id, changed, evicted: 0 });
        return this.#answer(this.#leases.revokeOne(leaseOf(request), now), now);
      }
      case 'clear':
        return this.#clear(from, request, now);
      case 'keys':
        return from.send({ t: 'keys', id: request.id, ...this.#caches.keys(request, now) });
      case 'lease': {
        const { id, cache, key, waitMs } = request;
        if (this.#caches.has(request, now)) return this.#give(from, request, now);
        const asked = { peer: from, id, cache, key };
        return this.#answer(this.#leases.acquire(leaseOf(request), asked, waitMs, now), now);
      }
      case 'stats':
        return from.send({ t: 'stats', id: request.id, caches: this.#caches.stats() });
    }
  }

  /** Gives a lease back. */
  release(grant: number, from: Peer, now: number): void {
    this.#answer(this.#leases.release(grant, from, now), now);
  }

  cancel(id: number, from: Peer): void {
    this.#leases.cancel(id, from);
  }

  leave(peer: Peer, now: number): void {
    this.#answer(this.#leases.leave(peer, now), now);
  }

  sweep(now: number): void {
    this.#caches.sweep(now);
  }

  #clear(from: Peer, { id, cache, prefix }: RequestOf<'clear'>, now: number): void {
    if (prefix === undefined) {
      this.#caches.clear(cache);
      from.send({ t: 'done', id, changed: 0, evicted: 0 });
    } else this.#clearPrefix(from, { id, cache, prefix });
    const begin = leaseOf({ cache, key: prefix ?? '' });
    this.#answer(
      this.#leases.revoke((name) => name.startsWith(begin), now),
      now,
    );
  }

  /** Other requests are answered between its parts: a large cache takes a quarter of a second. */
  #clearPrefix(to: Peer, at: { id: number; cache: string; prefix: string }, part = 0): void {
    const next = this.#caches.clearPrefix(at.cache, at.prefix, part);
    if (next !== 0) setImmediate(() => this.#clearPrefix(to, at, next));
    else to.send({ t: 'done', id: at.id, changed: 0, evicted: 0 });
  }

  /** @returns whether the cache exists. If not, the request was refused. */
  #keep(from: Peer, request: RequestOf<'set' | 'fill'>, body: Buffer, now: number): boolean {
    const evicted = this.#caches.set(request, body, now);
    if (typeof evicted === 'string') {
      refuse(from, request, evicted);
      return false;
    }
    from.send({ t: 'done', id: request.id, changed: 1, evicted });
    return true;
  }

  /** A value that is too large to be kept still goes to everyone who waits for it. */
  #endLease(
    from: Peer,
    { form, grant, ...at }: RequestOf<'fill'>,
    body: Buffer,
    now: number,
  ): void {
    if (this.#caches.has(at, now)) return this.release(grant, from, now);
    for (const { peer, id } of this.#leases.dismiss(grant, from, now)) {
      peer.send({ t: 'hit', id, form }, body);
    }
  }

  #give(to: Peer, at: { id: number; cache: string; key: string }, now: number): void {
    const entry = this.#caches.get(at, now);
    if (entry === undefined) to.send({ t: 'miss', id: at.id });
    else to.send({ t: 'hit', id: at.id, form: entry.form }, entry.value);
  }

  /** If the value is there by now, its lease goes on to the next peer, which gets the value, too. */
  #answer(answers: LockAnswer<Peer, LeaseRequest>[], now: number): void {
    for (let next = answers.shift(); next !== undefined; next = answers.shift()) {
      const { request } = next;
      const { peer } = request;
      if (next.type === 'granted' && this.#caches.has(request, now)) {
        this.#give(peer, request, now);
        answers.push(...this.#leases.release(next.grant, peer, now));
      } else answerLock(next);
    }
  }
}

/** Tells a peer what became of its request for a lock or a lease. */
export function answerLock(answer: LockAnswer<Peer, LockRequest<Peer>>): void {
  const { peer, id } = answer.request;
  if (answer.type === 'full') refuse(peer, { id }, 'too many wait for locks');
  else if (answer.type === 'expired') peer.send({ t: 'expired', id });
  else peer.send({ t: 'granted', id, grant: answer.grant });
}

/** Both names may hold any character, so the length says where the name of the cache ends. */
function leaseOf({ cache, key }: { readonly cache: string; readonly key: string }): string {
  return `${cache.length} ${cache}${key}`;
}
