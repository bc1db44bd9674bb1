import type { Peer } from '../wire/protocol.js';

/** A request for a lock: the peer that asks, and the number of its request. */
export interface LockRequest {
  readonly peer: Peer;
  readonly id: number;
  /** How many peers may hold the lock at once. Each request is checked against its own `max`. Default: 1. */
  readonly max?: number;
  /** How many requests may wait for the lock. Default: unlimited. */
  readonly maxWaiting?: number;
}

interface Lock<R> {
  readonly name: string;
  /** The numbers of the grants that hold the lock. */
  readonly holders: Set<number>;
  /** The waiting requests, oldest first. */
  readonly queue: Set<R>;
}

interface Grant<R> {
  readonly lock: Lock<R>;
  readonly peer: Peer;
}

/** Sends a peer the answer to its request. @param grant `undefined` if the lock is not free. */
export function answerLock({ peer, id }: LockRequest, grant: number | undefined): void {
  peer.send(grant === undefined ? { t: 'taken', id } : { t: 'granted', id, grant });
}

/**
 * Locks by name, granted in the order of the requests. One peer, or up to `max`, can hold a lock. A
 * peer that disconnects releases its locks. Peers cancel their own waiting requests on timeout.
 */
export class Locks<R extends LockRequest = LockRequest> {
  readonly #locks = new Map<string, Lock<R>>();
  readonly #grants = new Map<number, Grant<R>>();
  /** The waiting requests by {@link keyOf}. */
  readonly #waits = new Map<string, { readonly request: R; readonly lock: Lock<R> }>();

  /**
   * @param answer called for each request that no longer waits.
   * @param lastGrant the first grant gets the next number.
   * @param closedUntil until this time, locks are granted only to peers that held them before.
   */
  constructor(
    private readonly answer: (request: R, grant: number | undefined) => void,
    private lastGrant = 0,
    private closedUntil = 0,
  ) {}

  acquire(name: string, request: R, mayWait: boolean): void {
    const lock = this.#lockOf(name);
    if (hasRoom(lock, request) && lock.queue.size === 0 && !this.#isClosed) {
      return this.#grant(lock, request);
    }
    if (mayWait && lock.queue.size < (request.maxWaiting ?? Infinity)) {
      lock.queue.add(request);
      this.#waits.set(keyOf(request.peer, request.id), { request, lock });
      return;
    }
    this.#removeUnused(lock);
    this.answer(request, undefined);
  }

  /** Grants a lock again to a peer that held it when the previous hub ended. */
  reclaim(name: string, request: R): void {
    const lock = this.#lockOf(name);
    if (this.#isClosed && hasRoom(lock, request)) return this.#grant(lock, request);
    this.#removeUnused(lock);
    this.answer(request, undefined);
  }

  release(grant: number, peer: Peer): void {
    if (this.#grants.get(grant)?.peer === peer) this.#free(grant);
  }

  /**
   * Releases a lock and ends all waits for it.
   *
   * @returns the requests that waited; `undefined` if the peer does not hold the lock.
   */
  dismiss(name: string, grant: number, peer: Peer): R[] | undefined {
    const { lock, peer: holder } = this.#grants.get(grant) ?? {};
    if (lock?.name !== name || holder !== peer) return undefined;
    const waiting = [...lock.queue];
    for (const each of waiting) this.#endWait(lock, each);
    this.#free(grant);
    return waiting;
  }

  /** Releases a lock on behalf of its holders. */
  revoke(name: string): void {
    const holders = [...(this.#locks.get(name)?.holders ?? [])]; // a copy, because freeing a lock adds holders
    holders.forEach((grant) => this.#free(grant));
  }

  /** Revokes all locks whose names begin with `begin`. */
  revokeAll(begin: string): void {
    for (const name of this.#locks.keys()) if (name.startsWith(begin)) this.revoke(name);
  }

  /** Removes a waiting request. */
  cancel(peer: Peer, id: number): void {
    const waiting = this.#waits.get(keyOf(peer, id));
    if (waiting === undefined) return;
    this.#endWait(waiting.lock, waiting.request);
    this.#admit(waiting.lock); // the next request may have a higher `max`
  }

  /** Releases all locks of a peer that has disconnected, and removes its waiting requests. */
  leave(peer: Peer): void {
    for (const { request, lock } of this.#waits.values()) {
      if (request.peer === peer) this.#endWait(lock, request);
    }
    for (const [grant, held] of this.#grants) if (held.peer === peer) this.#free(grant);
    for (const lock of this.#locks.values()) this.#removeUnused(lock);
  }

  /** Ends the time in which peers can reclaim locks. */
  open(): void {
    this.closedUntil = 0;
    for (const lock of this.#locks.values()) this.#admit(lock);
  }

  get #isClosed(): boolean {
    return performance.now() < this.closedUntil;
  }

  #lockOf(name: string): Lock<R> {
    let lock = this.#locks.get(name);
    if (lock === undefined) {
      lock = { name, holders: new Set(), queue: new Set() };
      this.#locks.set(name, lock);
    }
    return lock;
  }

  #grant(lock: Lock<R>, request: R): void {
    const grant = (this.lastGrant += 1);
    lock.holders.add(grant);
    this.#grants.set(grant, { lock, peer: request.peer });
    this.answer(request, grant);
  }

  #free(grant: number): void {
    const held = this.#grants.get(grant);
    if (held === undefined) return;
    this.#grants.delete(grant);
    held.lock.holders.delete(grant);
    this.#admit(held.lock);
  }

  /** Grants a lock to waiting requests, oldest first, as long as its maximum allows. */
  #admit(lock: Lock<R>): void {
    for (const request of lock.queue) {
      if (this.#isClosed || !hasRoom(lock, request)) break;
      this.#endWait(lock, request);
      this.#grant(lock, request);
    }
    this.#removeUnused(lock);
  }

  #endWait(lock: Lock<R>, request: R): void {
    lock.queue.delete(request);
    this.#waits.delete(keyOf(request.peer, request.id));
  }

  #removeUnused(lock: Lock<R>): void {
    if (lock.holders.size === 0 && lock.queue.size === 0) this.#locks.delete(lock.name);
  }
}

function hasRoom(lock: Lock<unknown>, { max = 1 }: LockRequest): boolean {
  return lock.holders.size < max;
}

function keyOf({ number }: Peer, id: number): string {
  return `${number} ${id}`;
}
