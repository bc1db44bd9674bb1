import { machineNow } from '../../contract/ipc/machine-clock.js';
import type { PrimaryMessage, WorkerMessage } from '../../contract/ipc/index.js';
import type { LeaderRole, Leading } from '../../contract/snapshot/index.js';

/** Two clocks are read one after the other. A run that is doubted is lost rather than run twice. */
const ROUNDING_MS = 10;

/**
 * The lease of a worker, while it leads: `supervisor/decide/leadership.ts` says why no two have one.
 * Each question looks at the clock: nobody tells a worker that its lease has ended.
 */
export class WorkerLeaderRole implements LeaderRole {
  readonly #listeners: ((leading: Leading) => void)[] = [];
  readonly #running = new Map<object, readonly string[]>();
  #asked = false;
  /** A time of the machine's clock, like `#since`. The clock of `Date.now()` may be set back or forth. */
  #until = -Infinity;
  #since: number | undefined;
  /** A time of `Date.now()`. */
  #resignedAt: number | undefined;

  constructor(private readonly send: (message: WorkerMessage) => void) {}

  get leads(): boolean {
    this.#ask();
    return this.#resignedAt === undefined && machineNow() < this.#until;
  }

  owns(due: number): boolean {
    if (machineNow() >= this.#until) return false;
    if (this.#resignedAt !== undefined) return due <= this.#resignedAt;
    return due > (this.#ownsSince ?? -Infinity);
  }

  follow(told: (leading: Leading) => void): void {
    this.#listeners.push(told);
    this.#ask();
  }

  tellRunning(of: object, running: readonly string[], done?: string): void {
    if (running.length === 0) this.#running.delete(of);
    else this.#running.set(of, running);
    const all = new Set([...this.#running.values()].flat());
    this.send({ type: 'jobs', running: [...all], done });
  }

  /** The primary gives or renews the lease. */
  hear({ seq, until, since, busy, done }: PrimaryMessage & { type: 'lead' }): void {
    if (this.#resignedAt !== undefined) return;
    this.send({ type: 'leads', seq });
    const now = machineNow();
    const fresh = now >= this.#until;
    if (fresh) {
      // Runs due since its own lease ran out are its own, if nobody else has led since.
      const ended = Math.max(since ?? -Infinity, this.#until);
      if (ended > -Infinity) this.#since = ended;
    }
    this.#until = until;
    if (now >= until) return;
    const ownsSince = this.#ownsSince;
    for (const told of this.#listeners) told({ fresh, since: ownsSince, busy, done });
  }

  /** It begins nothing more: before it drains. */
  resign(): void {
    if (this.#resignedAt !== undefined) return;
    const wall = Date.now();
    // Ticks are due at whole seconds. The middle of one is the same to every worker, however it
    // rounds; a timer of this one that is a little late for its second may still run.
    this.#resignedAt = Math.floor(wall / 1_000) * 1_000 + 500;
    const now = machineNow();
    if (now < this.#until) this.send({ type: 'resigned', at: now + this.#resignedAt - wall });
  }

  /** A time of `Date.now()` as it is set now. Later runs are its own. */
  get #ownsSince(): number | undefined {
    return this.#since === undefined
      ? undefined
      : Date.now() - (machineNow() - this.#since) + ROUNDING_MS;
  }

  #ask(): void {
    if (this.#asked) return;
    this.#asked = true;
    this.send({ type: 'lead-request' });
  }
}
