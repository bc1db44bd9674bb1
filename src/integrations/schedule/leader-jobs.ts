import { clockMs, wasClockSet } from '../../contract/process/machine-clock.js';
import type { LeaderRole, Leading } from '../../contract/snapshot/index.js';
import type { JobOutcome } from './job-metrics.js';

/** A job that every worker has and only one worker runs. */
export interface Job {
  readonly name: string;
  /** A `cron` job is due at the same times in all workers. A `timeout` job runs once in the cluster. */
  readonly kind: 'cron' | 'interval' | 'timeout';
  readonly run: () => unknown;
}

/** Runs jobs if this worker is the leader. */
export class LeaderJobs {
  readonly #names = new Set<string>();
  #running = 0;
  /** The `timeout` jobs that were due while this process did not lead. */
  readonly #waiting = new Set<Job>();
  /** Names of the `timeout` jobs that have begun, here or in another worker. */
  readonly #done = new Set<string>();

  constructor(
    private readonly role: () => LeaderRole,
    private readonly count: (job: string, outcome: JobOutcome) => void,
  ) {}

  /** The names of the jobs, in the order in which the jobs were found. */
  get names(): readonly string[] {
    return [...this.#names];
  }

  /** One line for the log. @param everywhere the number of jobs that run in all workers. */
  summary(everywhere: number): string {
    const { names } = this;
    const jobs = names.length === 1 ? '1 scheduled job runs' : `${names.length} scheduled jobs run`;
    return (
      `${jobs} in one worker, the leader: ${names.join(', ') || 'none'}` +
      (everywhere > 0 ? `; ${everywhere} run in every worker` : '')
    );
  }

  /** Whether a job runs in this process. A drain waits for it. */
  get isRunning(): boolean {
    return this.#running > 0;
  }

  /**
   * @returns the function that the job's timer must call. The timer of a cron job passes the due
   * time, on the scale of `Date.now()`.
   */
  add(job: Job): (due?: number) => unknown {
    this.#names.add(job.name);
    let handled = -Infinity;
    let clock = 0;
    return (due) => {
      if (due === undefined) {
        if (this.role().leads) return this.#begin(job);
        if (job.kind === 'timeout') this.#waiting.add(job);
        return;
      }
      // If the clock was set, the same times are due again.
      const isRepeated = due <= handled && !wasClockSet(clock);
      if (isRepeated || !this.role().owns(due)) return;
      handled = due;
      clock = clockMs();
      return job.run();
    };
  }

  /**
   * Returns the name, with a number added if another job already has that name. The result is the
   * same in every worker, because all workers find the same jobs in the same order.
   */
  freeName(name: string): string {
    let free = name;
    for (let count = 2; this.#names.has(free); count += 1) free = `${name}#${count}`;
    return free;
  }

  /** Makes the name free for another job. */
  remove(name: string): void {
    this.#names.delete(name);
  }

  /** Forgets the jobs that wait. Called when the app is closed. */
  close(): void {
    this.#waiting.clear();
  }

  /** Called when this process becomes the leader, and each time its lease is renewed. */
  readonly told = ({ done }: Leading): void => {
    for (const name of done) this.#done.add(name);
    for (const job of this.#waiting) {
      this.#waiting.delete(job);
      void this.#begin(job);
    }
  };

  /** @returns the method with tracked runs. Each run is counted under the job's current name. */
  tracked(job: { readonly name: string }, method: (...args: unknown[]) => unknown) {
    const track = this.track.bind(this);
    return function (this: unknown, ...args: unknown[]) {
      return track(job.name, () => method.apply(this, args));
    };
  }

  /** Runs a job's method, and counts how it ends. */
  async track<R>(name: string, run: () => R): Promise<Awaited<R>> {
    this.#running += 1;
    try {
      const result = await run();
      this.count(name, 'succeeded');
      return result;
    } catch (error) {
      this.count(name, 'failed');
      throw error;
    } finally {
      this.#running -= 1;
    }
  }

  #begin(job: Job): unknown {
    if (job.kind === 'timeout') {
      if (this.#done.has(job.name)) return undefined;
      this.#done.add(job.name);
      this.role().begun(job.name); // before the run, because the method may block this process
    }
    return job.run();
  }
}
