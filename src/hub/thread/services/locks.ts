/** A request for a lock: the peer that asks, and the number of its request. */
export interface LockRequest<P> {
  readonly peer: P;
  readonly id: number;
}

export type LockAnswer<P, R extends LockRequest<P>> =
  | { readonly type: 'granted'; readonly request: R; readonly grant: number }
  | { readonly type: 'expired'; readonly request: R }
  | { readonly type: 'full'; readonly request: R };

interface Waiting<R> {
  readonly request: R;
  readonly until: number;
  readonly lock: Lock<unknown, R>;
}

interface Lock<P, R> {
  readonly name: string;
  grant: number;
  holder: P | undefined;
  /** The waiting requests, oldest first. */
  readonly queue: Set<Waiting<R>>;
}

/** The locks that a peer holds, and its waiting requests by their numbers. */
interface PeerLocks<P, R> {
  readonly waits: Map<number, Waiting<R>>;
  readonly holds: Set<Lock<P, R>>;
}

/** Maximum number of waiting requests for all locks together. Beyond it, requests are refused. */
const MAX_WAITING = 100_000;

/**
 * Locks by name, granted in the order of the requests. A peer that is gone holds no lock. Callers
 * pass the current time.
 */
export class Locks<P, R extends LockRequest<P> = LockRequest<P>> {
  readonly #locks = new Map<string, Lock<P, R>>();
  readonly #held = new Map<number, Lock<P, R>>();
  readonly #peers = new Map<P, PeerLocks<P, R>>();
  #waiting = 0;

  /**
   * @param closedUntil until this time, locks are granted only to peers that held them before.
   * @param lastGrant a number; the first grant gets the next number.
   */
  constructor(
    private closedUntil = -Infinity,
    private readonly maxWaiting = MAX_WAITING,
    private lastGrant = 0,
  ) {}

  /** @returns the answer, or nothing while the request waits. */
  acquire(name: string, request: R, waitMs: number, now: number): LockAnswer<P, R>[] {
    const lock = this.#lockOf(name);
    if (lock.holder === undefined && lock.queue.size === 0 && now >= this.closedUntil) {
      return [this.#grant(lock, request)];
    }
    if (waitMs <= 0 || this.#waiting >= this.maxWaiting) {
      this.#removeUnused(lock);
      return [{ type: waitMs <= 0 ? 'expired' : 'full', request }];
    }
    const waiting = { request, until: now + waitMs, lock };
    lock.queue.add(waiting);
    this.#peerOf(request.peer).waits.set(request.id, waiting);
    this.#waiting += 1;
    return [];
  }

  /** Gives a lock back to the peer that held it when the previous hub ended. */
  reclaim(name: string, request: R, now: number): LockAnswer<P, R>[] {
    const lock = this.#lockOf(name);
    if (now < this.closedUntil && lock.holder === undefined) return [this.#grant(lock, request)];
    this.#removeUnused(lock);
    return [{ type: 'expired', request }];
  }

  /** @returns the answers to waiting requests. */
  release(grant: number, peer: P, now: number): LockAnswer<P, R>[] {
    const lock = this.#held.get(grant);
    return lock?.holder === peer ? this.#free(lock, now) : [];
  }

  /** Releases a lock and ends all waits for it. @returns the requests that waited. */
  dismiss(grant: number, peer: P, now: number): R[] {
    const lock = this.#held.get(grant);
    if (lock?.holder !== peer) return [];
    const waiting = [...lock.queue];
    for (const each of waiting) this.#endWait(each);
    this.#free(lock, now);
    return waiting.map(({ request }) => request);
  }

  holds(name: string, grant: number, peer: P): boolean {
    const lock = this.#held.get(grant);
    return lock?.name === name && lock.holder === peer;
  }

  /** Takes locks from their holders. @returns the answers to waiting requests. */
  revoke(isMeant: (name: string) => boolean, now: number): LockAnswer<P, R>[] {
    return [...this.#held.values()].flatMap((lock) =>
      isMeant(lock.name) ? this.#free(lock, now) : [],
    );
  }

  /** Takes one lock from its holder. @returns the answers to waiting requests. */
  revokeOne(name: string, now: number): LockAnswer<P, R>[] {
    const lock = this.#locks.get(name);
    return lock?.holder === undefined ? [] : this.#free(lock, now);
  }

  /** Ends the wait of a request. */
  cancel(id: number, peer: P): void {
    const waiting = this.#peers.get(peer)?.waits.get(id);
    if (waiting === undefined) return;
    this.#endWait(waiting);
    this.#removeUnused(waiting.lock as Lock<P, R>);
  }

  /** Releases all locks of a peer that is gone. @returns the answers to waiting requests. */
  leave(peer: P, now: number): LockAnswer<P, R>[] {
    const own = this.#peers.get(peer);
    if (own === undefined) return [];
    for (const { request } of own.waits.values()) this.cancel(request.id, peer);
    const answers = [...own.holds].flatMap((lock) => this.#free(lock, now));
    this.#peers.delete(peer);
    return answers;
  }

  /** Ends the time in which peers can reclaim locks. @returns the answers to waiting requests. */
  open(now: number): LockAnswer<P, R>[] {
    this.closedUntil = -Infinity;
    return [...this.#locks.values()].flatMap((lock) =>
      lock.holder === undefined ? this.#free(lock, now) : [],
    );
  }

  /** The number of locks that a peer holds or waits for. */
  get size(): number {
    return this.#locks.size;
  }

  #lockOf(name: string): Lock<P, R> {
    let lock = this.#locks.get(name);
    if (lock === undefined) {
      lock = { name, grant: 0, holder: undefined, queue: new Set() };
      this.#locks.set(name, lock);
    }
    return lock;
  }

  #peerOf(peer: P): PeerLocks<P, R> {
    let own = this.#peers.get(peer);
    if (own === undefined) {
      own = { waits: new Map(), holds: new Set() };
      this.#peers.set(peer, own);
    }
    return own;
  }

  #grant(lock: Lock<P, R>, request: R): LockAnswer<P, R> {
    this.lastGrant += 1;
    lock.grant = this.lastGrant;
    lock.holder = request.peer;
    this.#held.set(lock.grant, lock);
    this.#peerOf(request.peer).holds.add(lock);
    return { type: 'granted', request, grant: lock.grant };
  }

  #free(lock: Lock<P, R>, now: number): LockAnswer<P, R>[] {
    if (lock.holder !== undefined) this.#peers.get(lock.holder)?.holds.delete(lock);
    this.#held.delete(lock.grant);
    lock.holder = undefined;
    const answers: LockAnswer<P, R>[] = [];
    if (now < this.closedUntil) return answers;
    for (const waiting of lock.queue) {
      this.#endWait(waiting);
      if (waiting.until > now) {
        answers.push(this.#grant(lock, waiting.request));
        return answers;
      }
      answers.push({ type: 'expired', request: waiting.request });
    }
    this.#removeUnused(lock);
    return answers;
  }

  #endWait(waiting: Waiting<R>): void {
    const { peer, id } = waiting.request;
    waiting.lock.queue.delete(waiting);
    this.#peers.get(peer)?.waits.delete(id);
    this.#waiting -= 1;
  }

  #removeUnused(lock: Lock<P, R>): void {
    if (lock.holder === undefined && lock.queue.size === 0) this.#locks.delete(lock.name);
  }
}
