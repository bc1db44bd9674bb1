import type { Peer, RequestOf } from '../wire/protocol.js';
import { CacheEntries } from './cache-entries.js';
import { answerLock, type LockRequest, Locks } from './locks.js';

interface CacheKey {
  readonly cache: string;
  readonly key: string;
}

type LeaseRequest = LockRequest & CacheKey;

type CacheRequest = RequestOf<
  'get' | 'set' | 'fill' | 'delete' | 'clear' | 'keys' | 'lease' | 'stats'
>;

/** Caches by name, and leases of keys. The peer that holds a key's lease computes the value. Other peers wait. */
export class Caches {
  readonly #caches = new Map<string, CacheEntries>();
  readonly #leases: Locks<LeaseRequest>;

  /** @param lastGrant see {@link Locks}. */
  constructor(lastGrant: number) {
    this.#leases = new Locks((request, grant) => {
      const value = this.#caches.get(request.cache)?.peek(request.key);
      if (grant === undefined || value === undefined) return answerLock(request, grant);
      // The key was set while the request waited.
      request.peer.send({ t: 'hit', id: request.id }, value);
      this.#leases.release(grant, request.peer);
    }, lastGrant);
  }

  /** @param body a view of reused memory. The cache copies it. */
  receive(from: Peer, request: CacheRequest, body: Buffer): void {
    const { id } = request;
    switch (request.op) {
      case 'get':
        return this.#give(from, request);
      case 'set':
        this.#entriesFor(request).set(request.key, body, request.ttlMs);
        from.send({ t: 'done', id, changed: 1 });
        return this.#leases.revoke(leaseOf(request));
      case 'fill': {
        const waiting = this.#leases.dismiss(leaseOf(request), request.grant, from);
        // If the lease no longer exists, the key has changed, so the computed value is outdated.
        if (waiting === undefined) return from.send({ t: 'void', id });
        this.#entriesFor(request).set(request.key, body, request.ttlMs);
        from.send({ t: 'done', id, changed: 1 });
        // Waiting peers get the value even if it is too large for the cache.
        for (const each of waiting) each.peer.send({ t: 'hit', id: each.id }, body);
        return;
      }
      case 'delete': {
        const had = this.#caches.get(request.cache)?.delete(request.key) === true;
        from.send({ t: 'done', id, changed: had ? 1 : 0 });
        return this.#leases.revoke(leaseOf(request));
      }
      case 'clear':
        this.#caches.get(request.cache)?.clear(request.prefix);
        from.send({ t: 'done', id, changed: 0 });
        return this.#leases.revokeAll(nameIn(request.cache, request.prefix ?? ''));
      case 'keys': {
        const keys = this.#caches.get(request.cache)?.keys(request.prefix) ?? [];
        return from.send({ t: 'keys', id, keys });
      }
      case 'lease': {
        const { cache, key } = request;
        return this.#leases.acquire(leaseOf(request), { peer: from, id, cache, key }, true);
      }
      case 'stats': {
        const caches = [...this.#caches].map(([cache, entries]) => ({ cache, ...entries.stats }));
        return from.send({ t: 'stats', id, caches });
      }
    }
  }

  /** Ends the lease of a peer. */
  release(grant: number, from: Peer): void {
    this.#leases.release(grant, from);
  }

  cancel(from: Peer, id: number): void {
    this.#leases.cancel(from, id);
  }

  leave(peer: Peer): void {
    this.#leases.leave(peer);
  }

  sweep(): void {
    for (const entries of this.#caches.values()) entries.sweep();
  }

  #give(to: Peer, { id, cache, key }: CacheKey & { readonly id: number }): void {
    const value = this.#caches.get(cache)?.get(key);
    if (value === undefined) to.send({ t: 'miss', id });
    else to.send({ t: 'hit', id }, value);
  }

  #entriesFor({ cache, maxBytes }: RequestOf<'set' | 'fill'>): CacheEntries {
    let entries = this.#caches.get(cache);
    if (entries === undefined) this.#caches.set(cache, (entries = new CacheEntries(maxBytes)));
    return entries;
  }
}

const leaseOf = ({ cache, key }: CacheKey): string => nameIn(cache, key);

/** Combines two names that may contain any character. Begins with a length, so that the result is unambiguous. */
export function nameIn(scope: string, key: string): string {
  return `${scope.length} ${scope}${key}`;
}
