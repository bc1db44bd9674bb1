import type { HubClient } from '../client/hub-client.js';

/**
 * The next hub keeps locks for a little longer, for the workers that hold them. It may have started at
 * the moment when the connection was lost.
 */
const KEPT_MS = 1_800;

/** The longest wait for the answer of the next hub. */
const RECLAIM_MS = 900;

/** A lock that this process holds. */
export class HeldLock {
  readonly #lost = new AbortController();
  /** It grows with each grant, also from one hub to the next. */
  readonly token: number;
  #deadline: NodeJS.Timeout | undefined;
  held = true;

  constructor(
    readonly name: string,
    /** The hub's number for it. Another hub gives it another one. */
    public grant: number,
  ) {
    this.token = grant;
  }

  /** Aborted once somebody else may hold the lock. */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  /** The connection is lost: another hub may give the lock to others. */
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

/** The locks that this process holds. It reclaims them from the next hub before others can get them. */
export class HeldLocks {
  readonly #held = new Set<HeldLock>();

  constructor(private readonly hub: HubClient) {
    hub.listen({
      opened: (anew) => {
        for (const lock of this.#held) {
          if (anew) void this.#reclaim(lock);
          else lock.lose(); // the hub gave it to others when the connection was lost
        }
      },
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

  async #reclaim(lock: HeldLock): Promise<void> {
    const { name } = lock;
    try {
      const question = { op: 'lock', name, waitMs: 0, reclaim: true } as const;
      const { header } = await this.hub.ask(question, RECLAIM_MS);
      if (header.t !== 'granted') return lock.lose();
      if (lock.held) lock.keep(header.grant);
      else this.hub.tell({ op: 'unlock', grant: header.grant });
    } catch {
      lock.lose(); // lost again: whether the next hub gives it back is unknown
    }
  }
}
