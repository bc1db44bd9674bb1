import type { RequestOf } from '../../wire/protocol.js';
import { type LockAnswer, type LockRequest, Locks } from '../services/locks.js';
import { type Peer, refuse } from '../services/peer.js';
import { CacheEntries } from './cache-entries.js';

interface CacheKey {
  readonly cache: string;
  readonly key: string;
}

type LeaseRequest = LockRequest<Peer> & CacheKey;

type CacheRequest = RequestOf<
  'get' | 'set' | 'fill' | 'delete' | 'clear' | 'keys' | 'lease' | 'stats'
>;

const MAX_CACHES = 64;

/** How many keys one turn of the event loop deletes, in about 5 ms. */
const CLEARED_AT_ONCE = 10_000;

/** lru-cache looks at every entry, which takes 50 ms for 250,000. */
const SWEEP_MS = 60_000;

/** Caches by name, and leases of keys. The peer with a key's lease computes the value; other peers wait. */
export class CacheService {
  readonly #caches = new Map<string, { maxBytes: number; readonly entries: CacheEntries }>();
  readonly #leases: Locks<Peer, LeaseRequest>;
  #sweepAt = 0;

  /**
   * @param lastGrant see {@link Locks}.
   * @param maxBytes the maximum size of all caches together.
   */
  constructor(
    lastGrant: number,
    private readonly maxBytes = Infinity,
  ) {
    this.#leases = new Locks(undefined, undefined, lastGrant);
  }

  /** @param body a view of memory that is reused. The cache copies it. */
  receive(from: Peer, request: CacheRequest, body: Buffer, now: number): void {
    switch (request.op) {
      case 'get':
        return this.#give(from, request, now);
      case 'set':
        if (!this.#keep(from, request, body, now)) return;
        return this.#answer(this.#leases.revokeOne(leaseOf(request), now), now);
      case 'fill':
        // If the lease is gone, the key has changed since, so the computed value is old.
        if (!this.#leases.holds(leaseOf(request), request.grant, from)) {
          return from.send({ t: 'void', id: request.id });
        }
        if (this.#keep(from, request, body, now)) this.#endLease(from, request, body, now);
        return;
      case 'delete': {
        const changed = this.#entriesOf(request)?.delete(request.key, now) === true ? 1 : 0;
        from.send({ t: 'done', id: request.id, changed, evicted: 0 });
        return this.#answer(this.#leases.revokeOne(leaseOf(request), now), now);
      }
      case 'clear':
        return this.#clear(from, request, now);
      case 'keys': {
        const keys = this.#entriesOf(request)?.keys(request.prefix, now) ?? [];
        return from.send({ t: 'keys', id: request.id, keys });
      }
      case 'lease': {
        const { id, cache, key, waitMs } = request;
        if (this.#has(request, now)) return this.#give(from, request, now);
        const asked = { peer: from, id, cache, key };
        return this.#answer(this.#leases.acquire(leaseOf(request), asked, waitMs, now), now);
      }
      case 'stats': {
        const caches = [...this.#caches].map(([cache, { entries }]) => ({
          cache,
          bytes: entries.bytes,
          entries: entries.size,
        }));
        return from.send({ t: 'stats', id: request.id, caches });
      }
    }
  }

  /** Ends the lease of a peer. */
  release(grant: number, from: Peer, now: number): void {
    this.#answer(this.#leases.release(grant, from, now), now);
  }

  cancel(id: number, from: Peer): void {
    this.#leases.cancel(id, from);
  }

  leave(peer: Peer, now: number): void {
    this.#answer(this.#leases.leave(peer, now), now);
  }

  /** Removes expired values once a minute. Until then they take memory, but are not read. */
  sweep(now: number): void {
    if (now < this.#sweepAt) return;
    this.#sweepAt = now + SWEEP_MS;
    for (const { entries } of this.#caches.values()) entries.sweep(now);
  }

  #clear(from: Peer, { id, cache, prefix }: RequestOf<'clear'>, now: number): void {
    if (prefix === undefined) {
      this.#entriesOf({ cache })?.clear();
      from.send({ t: 'done', id, changed: 0, evicted: 0 });
    } else
      this.#clearKeys(from, { id, cache }, this.#entriesOf({ cache })?.keys(prefix, now) ?? []);
    const begin = nameIn(cache, prefix ?? '');
    const next = this.#leases.revoke((name) => name.startsWith(begin), now);
    this.#answer(next, now);
  }

  /** Clears part by part, so that other requests are answered in between. */
  #clearKeys(to: Peer, at: { readonly id: number; readonly cache: string }, keys: string[]): void {
    const entries = this.#entriesOf(at);
    for (const key of keys.splice(-CLEARED_AT_ONCE)) entries?.delete(key);
    if (keys.length > 0) setImmediate(() => this.#clearKeys(to, at, keys));
    else to.send({ t: 'done', id: at.id, changed: 0, evicted: 0 });
  }

  /** @returns `false` if the request was refused. */
  #keep(from: Peer, request: RequestOf<'set' | 'fill'>, body: Buffer, now: number): boolean {
    const { id, key, form, ttlMs, maxBytes } = request;
    let cache = this.#caches.get(request.cache);
    const problem = cache?.maxBytes === maxBytes ? undefined : this.#problemOf(request);
    if (problem !== undefined) {
      refuse(from, request, problem);
      return false;
    }
    if (cache === undefined) {
      cache = { maxBytes, entries: new CacheEntries(maxBytes) };
      this.#caches.set(request.cache, cache);
    }
    let evicted = 0;
    if (cache.maxBytes !== maxBytes) {
      cache.maxBytes = maxBytes; // after a reload, the maximum may differ
      evicted = cache.entries.resize(maxBytes);
    }
    evicted += cache.entries.set(key, { form, value: body }, ttlMs, now);
    from.send({ t: 'done', id, changed: 1, evicted });
    return true;
  }

  /** @returns why a cache cannot have this maximum; `undefined` if it can. */
  #problemOf({ cache, maxBytes }: { readonly cache: string; readonly maxBytes: number }) {
    const others = [...this.#caches].filter(([name]) => name !== cache);
    if (others.length >= MAX_CACHES) return 'there are too many caches; give several the same name';
    const left = others.reduce((sum, [, other]) => sum - other.maxBytes, this.maxBytes);
    if (maxBytes <= left) return undefined;
    return `its maxBytes is ${maxBytes}, and of the memory of ${this.maxBytes} bytes the other caches leave ${Math.max(0, left)}; give all caches together less`;
  }

  /** Ends a lease. Waiting peers get the value even if it is too large to be kept. */
  #endLease(
    from: Peer,
    { form, grant, ...at }: RequestOf<'fill'>,
    body: Buffer,
    now: number,
  ): void {
    if (this.#has(at, now)) return this.release(grant, from, now);
    for (const { peer, id } of this.#leases.dismiss(grant, from, now)) {
      peer.send({ t: 'hit', id, form }, body);
    }
  }

  #give(to: Peer, at: CacheKey & { readonly id: number }, now: number): void {
    const entry = this.#entriesOf(at)?.get(at.key, now);
    if (entry === undefined) to.send({ t: 'miss', id: at.id });
    else to.send({ t: 'hit', id: at.id, form: entry.form }, entry.value);
  }

  #has(at: CacheKey, now: number): boolean {
    return this.#entriesOf(at)?.has(at.key, now) ?? false;
  }

  #entriesOf({ cache }: { readonly cache: string }): CacheEntries | undefined {
    return this.#caches.get(cache)?.entries;
  }

  /** If a value exists by now, the peer gets it, and its lease goes to the next waiting peer. */
  #answer(answers: LockAnswer<Peer, LeaseRequest>[], now: number): void {
    for (let next = answers.shift(); next !== undefined; next = answers.shift()) {
      const { request } = next;
      if (next.type === 'granted' && this.#has(request, now)) {
        this.#give(request.peer, request, now);
        answers.push(...this.#leases.release(next.grant, request.peer, now));
      } else answerLock(next);
    }
  }
}

/** Sends a peer the answer to its request for a lock or a lease. */
export function answerLock(answer: LockAnswer<Peer, LockRequest<Peer>>): void {
  const { peer, id } = answer.request;
  if (answer.type === 'full') refuse(peer, { id }, 'too many wait for locks');
  else if (answer.type === 'expired') peer.send({ t: 'expired', id });
  else peer.send({ t: 'granted', id, grant: answer.grant });
}

function leaseOf({ cache, key }: CacheKey): string {
  return nameIn(cache, key);
}

/** Names a key of a cache or a limit. Begins with a length, because both names may hold any character. */
export function nameIn(scope: string, key: string): string {
  return `${scope.length} ${scope}${key}`;
}
