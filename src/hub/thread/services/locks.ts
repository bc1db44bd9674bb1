/** Who asks for a lock: a peer, and the number of its question. */
export interface Asker<P> {
  readonly peer: P;
  readonly id: number;
}

export type LockAnswer<P, A extends Asker<P>> =
  | { readonly type: 'granted'; readonly asker: A; readonly grant: number }
  | { readonly type: 'expired'; readonly asker: A }
  | { readonly type: 'full'; readonly asker: A };

interface Waiting<A> {
  readonly asker: A;
  readonly until: number;
  readonly lock: Lock<unknown, A>;
}

interface Lock<P, A> {
  readonly name: string;
  grant: number;
  holder: P | undefined;
  /** Those who came first are first. */
  readonly queue: Set<Waiting<A>>;
}

/** What a peer waits for, by the number of its question, and what it holds. */
interface Part<P, A> {
  readonly waits: Map<number, Waiting<A>>;
  readonly holds: Set<Lock<P, A>>;
}

/** Askers that may wait, in all. */
const MAX_WAITING = 100_000;

/**
 * Locks by name, given in the order in which they were asked for. A peer that is gone holds none.
 * Without a clock: who calls says what time it is.
 */
export class Locks<P, A extends Asker<P> = Asker<P>> {
  readonly #locks = new Map<string, Lock<P, A>>();
  readonly #held = new Map<number, Lock<P, A>>();
  readonly #parts = new Map<P, Part<P, A>>();
  #waiting = 0;

  /**
   * @param closedUntil until then locks are only given to those who held them before.
   * @param lastGrant grants are numbered from there on.
   */
  constructor(
    private closedUntil = -Infinity,
    private readonly maxWaiting = MAX_WAITING,
    private lastGrant = 0,
  ) {}

  /** @returns the answer; none while it has to wait. */
  acquire(name: string, asker: A, waitMs: number, now: number): LockAnswer<P, A>[] {
    const lock = this.#lockOf(name);
    if (lock.holder === undefined && lock.queue.size === 0 && now >= this.closedUntil) {
      return [this.#grant(lock, asker)];
    }
    if (waitMs <= 0 || this.#waiting >= this.maxWaiting) {
      this.#forget(lock);
      return [{ type: waitMs <= 0 ? 'expired' : 'full', asker }];
    }
    const waiting = { asker, until: now + waitMs, lock };
    lock.queue.add(waiting);
    this.#partOf(asker.peer).waits.set(asker.id, waiting);
    this.#waiting += 1;
    return [];
  }

  /** Gives a lock back to the one who had it when the hub before this one ended. */
  reclaim(name: string, asker: A, now: number): LockAnswer<P, A>[] {
    const lock = this.#lockOf(name);
    if (now < this.closedUntil && lock.holder === undefined) return [this.#grant(lock, asker)];
    this.#forget(lock);
    return [{ type: 'expired', asker }];
  }

  /** @returns who has it next. */
  release(grant: number, peer: P, now: number): LockAnswer<P, A>[] {
    const lock = this.#held.get(grant);
    return lock?.holder === peer ? this.#free(lock, now) : [];
  }

  /** Gives it back, and to nobody else: those who wait for it have got what they wanted. @returns them. */
  dismiss(grant: number, peer: P, now: number): A[] {
    const lock = this.#held.get(grant);
    if (lock?.holder !== peer) return [];
    const waiting = [...lock.queue];
    for (const each of waiting) this.#drop(each);
    this.#free(lock, now);
    return waiting.map(({ asker }) => asker);
  }

  holds(name: string, grant: number, peer: P): boolean {
    const lock = this.#held.get(grant);
    return lock?.name === name && lock.holder === peer;
  }

  /** Takes those from their holders whose names are meant. @returns who has them next. */
  revoke(isMeant: (name: string) => boolean, now: number): LockAnswer<P, A>[] {
    return [...this.#held.values()].flatMap((lock) =>
      isMeant(lock.name) ? this.#free(lock, now) : [],
    );
  }

  /** @returns who has it next. */
  revokeOne(name: string, now: number): LockAnswer<P, A>[] {
    const lock = this.#locks.get(name);
    return lock?.holder === undefined ? [] : this.#free(lock, now);
  }

  /** It waits no longer. */
  cancel(id: number, peer: P): void {
    const waiting = this.#parts.get(peer)?.waits.get(id);
    if (waiting === undefined) return;
    this.#drop(waiting);
    this.#forget(waiting.lock as Lock<P, A>);
  }

  /** The peer is gone. */
  leave(peer: P, now: number): LockAnswer<P, A>[] {
    const part = this.#parts.get(peer);
    if (part === undefined) return [];
    for (const { asker } of part.waits.values()) this.cancel(asker.id, peer);
    const answers = [...part.holds].flatMap((lock) => this.#free(lock, now));
    this.#parts.delete(peer);
    return answers;
  }

  /** Those who held a lock have had the time to say so. */
  open(now: number): LockAnswer<P, A>[] {
    this.closedUntil = -Infinity;
    return [...this.#locks.values()].flatMap((lock) =>
      lock.holder === undefined ? this.#free(lock, now) : [],
    );
  }

  /** Locks that somebody holds or waits for. */
  get size(): number {
    return this.#locks.size;
  }

  #lockOf(name: string): Lock<P, A> {
    let lock = this.#locks.get(name);
    if (lock === undefined) {
      lock = { name, grant: 0, holder: undefined, queue: new Set() };
      this.#locks.set(name, lock);
    }
    return lock;
  }

  #partOf(peer: P): Part<P, A> {
    let part = this.#parts.get(peer);
    if (part === undefined) {
      part = { waits: new Map(), holds: new Set() };
      this.#parts.set(peer, part);
    }
    return part;
  }

  #grant(lock: Lock<P, A>, asker: A): LockAnswer<P, A> {
    this.lastGrant += 1;
    lock.grant = this.lastGrant;
    lock.holder = asker.peer;
    this.#held.set(lock.grant, lock);
    this.#partOf(asker.peer).holds.add(lock);
    return { type: 'granted', asker, grant: lock.grant };
  }

  #free(lock: Lock<P, A>, now: number): LockAnswer<P, A>[] {
    if (lock.holder !== undefined) this.#parts.get(lock.holder)?.holds.delete(lock);
    this.#held.delete(lock.grant);
    lock.holder = undefined;
    const answers: LockAnswer<P, A>[] = [];
    if (now < this.closedUntil) return answers;
    for (const waiting of lock.queue) {
      this.#drop(waiting);
      if (waiting.until > now) {
        answers.push(this.#grant(lock, waiting.asker));
        return answers;
      }
      answers.push({ type: 'expired', asker: waiting.asker });
    }
    this.#forget(lock);
    return answers;
  }

  #drop(waiting: Waiting<A>): void {
    const { peer, id } = waiting.asker;
    waiting.lock.queue.delete(waiting);
    this.#parts.get(peer)?.waits.delete(id);
    this.#waiting -= 1;
  }

  #forget(lock: Lock<P, A>): void {
    if (lock.holder === undefined && lock.queue.size === 0) this.#locks.delete(lock.name);
  }
}
