import { machineNow } from '../../contract/process/clock.js';
import type { PrimaryMessage, WorkerMessage } from '../../contract/messages.js';
import type { LeaderRole, Leading } from '../../contract/snapshot/types.js';

/** Two clocks are not read at the same instant. A run due within this margin may be lost, but never runs twice. */
const ROUNDING_MS = 10;

/**
 * The worker's lease as the leader. `decide/leadership.ts` explains why at most one worker has a
 * lease. Each call compares the lease's end with the clock, because no message announces the end.
 */
export class WorkerLeaderRole implements LeaderRole {
  readonly #listeners: ((leading: Leading) => void)[] = [];
  #asked = false;
  /** When the lease ends, by the machine's monotonic clock. Changes to the system time do not affect it. */
  #until = -Infinity;
  /** This worker owns runs due after this time on the machine's monotonic clock. */
  #since: number | undefined;
  /** The next leader owns runs due after this time, by `Date.now()`. */
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

  receive({ seq, until, since, done }: PrimaryMessage & { type: 'lead' }): void {
    if (this.#resignedAt !== undefined) return;
    this.send({ type: 'leads', seq });
    const now = machineNow();
    const fresh = now >= this.#until;
    if (fresh) {
      // No other worker has led since the last lease ended, so this worker owns the runs due since then.
      const ended = Math.max(since ?? -Infinity, this.#until);
      if (ended > -Infinity) this.#since = ended;
    }
    this.#until = until;
    if (now >= until) return;
    const isFirst = fresh && this.#since === undefined;
    for (const listener of this.#listeners) listener({ isFirst, done });
  }

  /** Gives up the lease, so that this worker starts no more jobs. Called before the drain. */
  resign(): void {
    if (this.#resignedAt !== undefined) return;
    const wall = Date.now();
    // Runs are due at whole seconds. Halfway between two seconds, rounding cannot make workers
    // disagree about a run. So runs of the current second still belong to this worker.
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
