import { isMainThread } from 'node:worker_threads';
import { ClusterConfigurationError } from 'nestjs-cluster/bootstrap';
import type { HubClient, HubError } from '../client/hub-client.js';
import { show } from '../options.js';
import type { RequestOf } from '../wire/protocol.js';

/** How long a lock counts as held after the connection is lost, in ms. A new hub reserves the lock slightly longer. */
const KEPT_MS = 1_800;

/** Maximum wait for the answer of a restarted hub, in ms. */
const RECLAIM_MS = 900;

/** The name of a lock, or a key of a limit. */
export type LockName = Pick<RequestOf<'lock'>, 'name' | 'limit'>;

/** A lock that this process holds, or one of the places of a limit. */
export class HeldLock {
  readonly #lost = new AbortController();
  /** The fencing token: the number of the first grant. Every later grant has a higher number. */
  readonly token: number;
  #deadline: NodeJS.Timeout | undefined;
  held = true;

  constructor(
    readonly named: LockName,
    /** The hub's number for this lock. It changes if a restarted hub returns the lock to this process. */
    public grant: number,
  ) {
    this.token = grant;
  }

  /** Aborted as soon as another process may hold the lock. */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  /** Called when the connection is lost, because a restarted hub may grant the lock to another process. */
  doubt(): void {
    this.#deadline ??= setTimeout(() => this.lose(), KEPT_MS).unref();
  }

  lose(): void {
    if (!this.held) return;
    const { name, limit } = this.named;
    const what = limit === undefined ? 'lock' : `place in the limit '${limit.name}' for`;
    this.#lost.abort(new Error(`the ${what} '${name}' was lost: the hub ended or did not respond`));
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

/** The locks that this process holds. They are reclaimed after the hub restarts. */
export class HeldLocks {
  readonly #held = new Set<HeldLock>();

  constructor(private readonly hub: HubClient) {
    hub.listen({
      opened: (restarted) => {
        for (const lock of this.#held) {
          if (restarted) void this.#reclaim(lock);
          else lock.lose(); // the same hub released the lock when the connection was lost
        }
      },
      closed: () => this.#held.forEach((lock) => lock.doubt()),
    });
  }

  /**
   * @returns `undefined` if the lock is not free in time.
   * @throws HubError if the hub refuses the request, or cannot be used.
   */
  async acquire(named: LockName, waitMs: number): Promise<HeldLock | undefined> {
    try {
      const question = (leftMs: number) => ({ op: 'lock', ...named, waitMs: leftMs }) as const;
      const { header } = await this.hub.askPatiently(question, waitMs);
      if (header.t !== 'granted') return undefined;
      const lock = new HeldLock(named, header.grant);
      this.#held.add(lock);
      return lock;
    } catch (error) {
      const { failure } = error as HubError;
      if (failure === 'timeout' || failure === 'lost') return undefined;
      throw error;
    }
  }

  release(lock: HeldLock): void {
    lock.release();
    this.#held.delete(lock);
    this.hub.tell({ op: 'unlock', grant: lock.grant });
  }

  async #reclaim(lock: HeldLock): Promise<void> {
    try {
      const question = { op: 'lock', ...lock.named, waitMs: 0, reclaim: true } as const;
      const { header } = await this.hub.ask(question, RECLAIM_MS);
      if (header.t !== 'granted') return lock.lose();
      if (lock.held) lock.keep(header.grant);
      else this.hub.tell({ op: 'unlock', grant: header.grant });
    } catch {
      lock.lose(); // without an answer, another process may hold the lock
    }
  }
}

/** @throws ClusterConfigurationError in a thread: only the main thread has a connection to the hub. */
export function refuseThread(call: string, name: string): void {
  if (isMainThread) return;
  throw new ClusterConfigurationError(
    `${call}(${show(name)}) was called in a thread, where it would apply to that thread only; call it in the main thread, around the call to the @CpuBound() method`,
  );
}
