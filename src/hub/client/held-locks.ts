import type { HubClient } from './hub-client.js';

/** A lock that this process holds. */
export class HeldLock {
  readonly #lost = new AbortController();
  held = true;

  constructor(
    readonly name: string,
    /** The hub's number for it; another hub gives it another one. */
    public grant: number,
  ) {}

  /** Aborted once somebody else may hold it. */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  lose(): void {
    if (!this.held) return;
    this.#lost.abort(new Error(`the lock '${this.name}' was lost: the hub ended or hung`));
  }
}

/** After a hub that ended: it must be asked while it gives locks to nobody else. */
const RECLAIM_MS = 900;

/** The locks that this process holds. The next hub is told of them, before it gives them to others. */
export class HeldLocks {
  readonly #held = new Set<HeldLock>();

  constructor(private readonly hub: HubClient) {
    hub.listen({ opened: (anew) => void this.#reclaim(anew) });
  }

  add(name: string, grant: number): HeldLock {
    const lock = new HeldLock(name, grant);
    this.#held.add(lock);
    return lock;
  }

  release(lock: HeldLock): void {
    lock.held = false;
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
      lock.grant = header.grant;
      if (!lock.held) this.hub.tell({ op: 'unlock', grant: header.grant });
    } catch {
      // Where the connection was lost again, the next one asks again: lost it is all the same.
      lock.lose();
    }
  }
}
