/** A request for a lock: the peer that asks, and the number of its request. */
export interface LockRequest<P> {
  readonly peer: P;
  readonly id: number;
  /** How many may hold the lock at once. If requests differ, each request is judged by its own number. Default: 1. */
  readonly max?: number;
  /** How many requests may wait for the lock. Default: no bound of its own. */
  readonly maxWaiting?: number;
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
  /** The peers that hold the lock, by the numbers of their grants. */
  readonly holders: Map<number, P>;
  /** The waiting requests, oldest first. */
  readonly queue: Set<Waiting<R>>;
}

/** The grants that a peer holds, and its waiting requests by their numbers. */
interface PeerLocks<R> {
  readonly waits: Map<number, Waiting<R>>;
  readonly holds: Set<number>;
}

/** Maximum number of locks, and of waiting requests for all locks together. Beyond it, requests are refused. */
const MAX_WAITING = 100_000;

/**
 * Locks by name, granted in the order of the requests. A lock is held by one peer, or by as many as
 * the requests say. A peer that is gone holds no lock. Callers pass the current time.
 */
export class Locks<P, R extends LockRequest<P> = LockRequest<P>> {
  readonly #locks = new Map<string, Lock<P, R>>();
  readonly #held = new Map<number, Lock<P, R>>();
  readonly #peers = new Map<P, PeerLocks<R>>();
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
    if (!this.#locks.has(name) && this.#locks.size >= this.maxWaiting) {
      return [{ type: 'full', request }];
    }
    const lock = this.#lockOf(name);
    if (hasRoom(lock, request) && lock.queue.size === 0 && now >= this.closedUntil) {
      return [this.#grant(lock, request)];
    }
    const isRefused = waitMs <= 0 || lock.queue.size >= (request.maxWaiting ?? Infinity);
    if (isRefused || this.#waiting >= this.maxWaiting) {
      this.#removeUnused(lock);
      return [{ type: isRefused ? 'expired' : 'full', request }];
    }
    const waiting = { request, until: now + waitMs, lock };
    lock.queue.add(waiting);
    this.#peerOf(request.peer).waits.set(request.id, waiting);
    this.#waiting += 1;
    return [];
  }

  /** Gives a lock back to a peer that held it when the previous hub ended. */
  reclaim(name: string, request: R, now: number): LockAnswer<P, R>[] {
    const lock = this.#lockOf(name);
    if (now < this.closedUntil && hasRoom(lock, request)) return [this.#grant(lock, request)];
    this.#removeUnused(lock);
    return [{ type: 'expired', request }];
  }

  /** @returns the answers to waiting requests. */
  release(grant: number, peer: P, now: number): LockAnswer<P, R>[] {
    return this.#held.get(grant)?.holders.get(grant) === peer ? this.#free(grant, now) : [];
  }

  /** Releases a lock and ends all waits for it. @returns the requests that waited. */
  dismiss(grant: number, peer: P, now: number): R[] {
    const lock = this.#held.get(grant);
    if (lock?.holders.get(grant) !== peer) return [];
    const waiting = [...lock.queue];
    for (const each of waiting) this.#endWait(each);
    this.#free(grant, now);
    return waiting.map(({ request }) => request);
  }

  holds(name: string, grant: number, peer: P): boolean {
    const lock = this.#held.get(grant);
    return lock?.name === name && lock.holders.get(grant) === peer;
  }

  /** Takes locks from their holders. @returns the answers to waiting requests. */
  revoke(isMeant: (name: string) => boolean, now: number): LockAnswer<P, R>[] {
    return [...this.#held].flatMap(([grant, { name }]) =>
      isMeant(name) ? this.#free(grant, now) : [],
    );
  }

  /** Takes one lock from its holders. @returns the answers to waiting requests. */
  revokeOne(name: string, now: number): LockAnswer<P, R>[] {
    const holders = this.#locks.get(name)?.holders.keys() ?? [];
    return [...holders].flatMap((grant) => this.#free(grant, now));
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
    const answers = [...own.holds].flatMap((grant) => this.#free(grant, now));
    this.#peers.delete(peer);
    return answers;
  }

  /** Ends the time in which peers can reclaim locks. @returns the answers to waiting requests. */
  open(now: number): LockAnswer<P, R>[] {
    this.closedUntil = -Infinity;
    return [...this.#locks.values()].flatMap((lock) => this.#admit(lock, now));
  }

  /** The number of locks that a peer holds or waits for. */
  get size(): number {
    return this.#locks.size;
  }

  #lockOf(name: string): Lock<P, R> {
    let lock = this.#locks.get(name);
    if (lock === undefined) {
      lock = { name, holders: new Map(), queue: new Set() };
      this.#locks.set(name, lock);
    }
    return lock;
  }

  #peerOf(peer: P): PeerLocks<R> {
    let own = this.#peers.get(peer);
    if (own === undefined) {
      own = { waits: new Map(), holds: new Set() };
      this.#peers.set(peer, own);
    }
    return own;
  }

  #grant(lock: Lock<P, R>, request: R): LockAnswer<P, R> {
    const grant = (this.lastGrant += 1);
    lock.holders.set(grant, request.peer);
    this.#held.set(grant, lock);
    this.#peerOf(request.peer).holds.add(grant);
    return { type: 'granted', request, grant };
  }

  #free(grant: number, now: number): LockAnswer<P, R>[] {
    const lock = this.#held.get(grant)!;
    this.#peers.get(lock.holders.get(grant)!)?.holds.delete(grant);
    this.#held.delete(grant);
    lock.holders.delete(grant);
    return this.#admit(lock, now);
  }

  /** Grants a lock to the requests that have waited longest, as far as there is room. */
  #admit(lock: Lock<P, R>, now: number): LockAnswer<P, R>[] {
    const answers: LockAnswer<P, R>[] = [];
    if (now < this.closedUntil) return answers;
    for (const waiting of lock.queue) {
      const { request, until } = waiting;
      if (until > now && !hasRoom(lock, request)) break;
      this.#endWait(waiting);
      answers.push(until > now ? this.#grant(lock, request) : { type: 'expired', request });
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
    if (lock.holders.size === 0 && lock.queue.size === 0) this.#locks.delete(lock.name);
  }
}

function hasRoom(lock: Lock<unknown, unknown>, { max = 1 }: LockRequest<unknown>): boolean {
  return lock.holders.size < max;
}
