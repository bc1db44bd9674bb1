import { machineNow } from '../../contract/process/clock.js';
import type { PrimaryMessage, WorkerMessage } from '../../contract/messages.js';
import type { LeaderRole, Leading } from '../../contract/snapshot/types.js';

/** A margin for reading two clocks one after the other. A run due within it may be lost, but never runs twice. */
const ROUNDING_MS = 10;

/**
 * The worker's lease as the leader. `decide/leadership.ts` explains why at most one
 * worker has a lease. Each call compares the lease's end with the clock, because no message
 * announces that end.
 */
export class WorkerLeaderRole implements LeaderRole {
  readonly #listeners: ((leading: Leading) => void)[] = [];
  #asked = false;
  /** The end of the lease by the machine's monotonic clock, which no one can set. */
  #until = -Infinity;
  /** The time from which runs belong to this worker, by the machine's monotonic clock. */
  #since: number | undefined;
  /** When the worker gave up its lease, by `Date.now()`. */
  #resignedAt: number | undefined;

  constructor(private readonly send: (message: WorkerMessage) => void) {}

  get leads(): boolean {
    this.#ask();
    return this.#resignedAt === undefined && machineNow() < this.#until;
  }

  owns(due: number): boolean {
    if (machineNow() >= this.#until) return false;
    if (this.#resignedAt !== undefined) return due <= this.#resignedAt;
    if (this.#since === undefined) return true;
    return due > Date.now() - (machineNow() - this.#since) + ROUNDING_MS;
  }

  follow(listener: (leading: Leading) => void): void {
    this.#listeners.push(listener);
    this.#ask();
  }

  begun(job: string): void {
    this.send({ type: 'job-begun', job });
  }

  /** Handles a new or renewed lease from the primary. */
  receive({ seq, until, since, done }: PrimaryMessage & { type: 'lead' }): void {
    if (this.#resignedAt !== undefined) return;
    this.send({ type: 'leads', seq });
    const now = machineNow();
    const fresh = now >= this.#until;
    if (fresh) {
      // If no other worker has led since this worker's last lease, this worker owns the runs due since then.
      const ended = Math.max(since ?? -Infinity, this.#until);
      if (ended > -Infinity) this.#since = ended;
    }
    this.#until = until;
    if (now >= until) return;
    const isFirst = fresh && this.#since === undefined;
    for (const listener of this.#listeners) listener({ isFirst, done });
  }

  /** Gives up the lease, so that this worker begins no further job. Called before the drain. */
  resign(): void {
    if (this.#resignedAt !== undefined) return;
    const wall = Date.now();
    // Ticks are due at whole seconds. In the middle of a second, all workers agree which ticks are
    // due, however they round. So a tick of the current second still belongs to this worker.
    this.#resignedAt = Math.floor(wall / 1_000) * 1_000 + 500;
    const now = machineNow();
    if (now < this.#until) this.send({ type: 'resigned', at: now + this.#resignedAt - wall });
  }

  #ask(): void {
    if (this.#asked) return;
    this.#asked = true;
    this.send({ type: 'lead-request' });
  }
}
