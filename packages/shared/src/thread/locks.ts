import type { Peer } from '../wire/protocol.js';

/** A request for a lock: the peer that asks, and the number of its request. */
export interface LockRequest {
  readonly peer: Peer;
  readonly id: number;
  /** How many may hold the lock at once. If requests differ, each request is judged by its own number. Default: 1. */
  readonly max?: number;
  /** How many requests may wait for the lock. Default: any number. */
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
 * Locks by name, granted in the order of the requests. A lock is held by one peer, or by as many as
 * the requests say. A peer that is gone holds no lock. A peer ends its waits by itself.
 */
export class Locks<R extends LockRequest = LockRequest> {
  readonly #locks = new Map<string, Lock<R>>();
  readonly #grants = new Map<number, Grant<R>>();
  /** The waiting requests by {@link keyOf}. */
  readonly #waits = new Map<string, { readonly request: R; readonly lock: Lock<R> }>();

  /**
   * @param answer is called for each request that waits no longer.
   * @param lastGrant a number; the first grant gets the next number.
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

  /** Gives a lock back to a peer that held it when the previous hub ended. */
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

  /** Takes a lock from its holders. */
  revoke(name: string): void {
    const holders = [...(this.#locks.get(name)?.holders ?? [])]; // not those that come next
    holders.forEach((grant) => this.#free(grant));
  }

  /** Takes the locks whose names begin so from their holders. */
  revokeAll(begin: string): void {
    for (const name of this.#locks.keys()) if (name.startsWith(begin)) this.revoke(name);
  }

  /** Ends the wait of a request. */
  cancel(peer: Peer, id: number): void {
    const waiting = this.#waits.get(keyOf(peer, id));
    if (waiting === undefined) return;
    this.#endWait(waiting.lock, waiting.request);
    this.#admit(waiting.lock); // the next request may need less room
  }

  /** Releases all locks of a peer that is gone. */
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

  /** Grants a lock to the requests that have waited longest, as far as there is room. */
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
