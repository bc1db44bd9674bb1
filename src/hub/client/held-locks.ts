import type { HubClient } from './hub-client.js';

/**
 * The hub that follows keeps locks for so long, and a little longer, for those who held them. It may
 * have begun when the connection was lost.
 */
const KEPT_MS = 1_800;

/** A lock that this process holds. */
export class HeldLock {
  readonly #lost = new AbortController();
  /** It grows with each grant: also from one hub to the next. */
  readonly token: number;
  #deadline: NodeJS.Timeout | undefined;
  held = true;

  constructor(
    readonly name: string,
    /** The hub's number for it; another hub gives it another one. */
    public grant: number,
  ) {
    this.token = grant;
  }

  /** Aborted once somebody else may hold it. */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  /** There is no connection to the hub: another one may give the lock to others. */
  doubt(): void {
    this.#deadline ??= setTimeout(() => this.lose(), KEPT_MS).unref();
  }

  lose(): void {
    if (!this.held) return;
    this.#lost.abort(new Error(`the lock '${this.name}' was lost: the hub ended or hung`));
  }

  keep(grant: number): void {
    this.#endDoubt();
    this.grant = grant;
  }

  release(): void {
    this.#endDoubt();
    this.held = false;
  }

  #endDoubt(): void {
    clearTimeout(this.#deadline);
    this.#deadline = undefined;
  }
}

/** For the answer of the hub that follows. */
const RECLAIM_MS = 900;

/** The locks that this process holds. The next hub is told of them, before it gives them to others. */
export class HeldLocks {
  readonly #held = new Set<HeldLock>();

  constructor(private readonly hub: HubClient) {
    hub.listen({
      opened: (anew) => void this.#reclaim(anew),
      closed: () => this.#held.forEach((lock) => lock.doubt()),
    });
  }

  add(name: string, grant: number): HeldLock {
    const lock = new HeldLock(name, grant);
    this.#held.add(lock);
    return lock;
  }

  release(lock: HeldLock): void {
    lock.release();
    this.#held.delete(lock);
    this.hub.tell({ op: 'unlock', grant: lock.grant });
  }

  /** @param anew the same hub has given them to others when the connection was lost. */
  async #reclaim(anew: boolean): Promise<void> {
    const held = [...this.#held];
    if (!anew) return held.forEach((lock) => lock.lose());
    await Promise.all(held.map((lock) => this.#reclaimOne(lock)));
  }

  async #reclaimOne(lock: HeldLock): Promise<void> {
    const { name } = lock;
    try {
      const question = { op: 'lock', name, waitMs: 0, reclaim: true } as const;
      const { header } = await this.hub.ask(question, RECLAIM_MS);
      if (header.t !== 'granted') return lock.lose();
      if (lock.held) lock.keep(header.grant);
      else this.hub.tell({ op: 'unlock', grant: header.grant });
    } catch {
      // Where the connection was lost again, the next one asks again: lost it is all the same.
      lock.lose();
    }
  }
}
