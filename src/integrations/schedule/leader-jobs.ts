import { clockMs, wasClockSet } from '../../contract/ipc/machine-clock.js';
import type { LeaderRole, Leading } from '../../contract/snapshot/index.js';
import type { JobOutcome } from './job-metrics.js';

/** A job that every worker has and only one worker runs. All times are of `Date.now()`. */
export interface Job {
  readonly name: string;
  /** A `cron` job is due at the same times in all workers. A `timeout` job runs once in the cluster. */
  readonly kind: 'cron' | 'interval' | 'timeout';
  readonly run: () => unknown;
  /** Returns the time at which a cron job was last due, after `since` and not after `now`. */
  readonly owed?: (since: number, now: number) => number | undefined;
}

interface KnownJob extends Job {
  /** The last due time that this process handled. */
  handled: number;
  /** The machine clock when `handled` was set, to notice if the clock is set later. */
  clock: number;
  /** When the job was last due while another worker led. */
  missed: number;
}

/**
 * Runs jobs if this worker is the leader. A new leader catches up on missed runs, with at most one
 * run for each job. A job does not begin while it still runs in another worker.
 */
export class LeaderJobs {
  readonly #jobs = new Set<KnownJob>();
  readonly #running = new Map<string, number>();
  /** Jobs that wait until their run in another worker has ended. */
  readonly #waiting = new Set<KnownJob>();
  #busy: ReadonlySet<string> = new Set();
  readonly #done = new Set<string>();

  constructor(
    private readonly role: () => LeaderRole,
    private readonly count: (job: string, outcome: JobOutcome) => void,
  ) {}

  /** The names of the jobs, in the order in which the jobs were found. */
  get names(): readonly string[] {
    return Array.from(this.#jobs, ({ name }) => name);
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
    return this.#running.size > 0;
  }

  /** @returns the function that the job's timer must call. The timer of a cron job passes the due time. */
  add(job: Job): (due?: number) => unknown {
    const known: KnownJob = { ...job, handled: -Infinity, clock: 0, missed: -Infinity };
    this.#jobs.add(known);
    return (due) => {
      if (due !== undefined) {
        if (due <= handledBy(known) || !this.role().owns(due)) return;
        handle(known, due);
      } else if (!this.role().leads) {
        known.missed = Date.now();
        return;
      }
      return this.#begin(known);
    };
  }

  /**
   * Returns the name, with a number added if another job already has that name. The result is the
   * same in every worker, because all workers find the same jobs in the same order.
   */
  freeName(name: string): string {
    const { names } = this;
    let free = name;
    for (let count = 2; names.includes(free); count += 1) free = `${name}#${count}`;
    return free;
  }

  /** Forgets a job, so that its missed runs are not caught up. */
  remove(name: string): void {
    for (const job of this.#jobs) {
      if (job.name !== name) continue;
      this.#jobs.delete(job);
      this.#waiting.delete(job);
    }
  }

  /** Forgets all jobs. Called when the app is closed. */
  close(): void {
    this.#jobs.clear();
    this.#waiting.clear();
  }

  /** Called when this process becomes the leader, and each time its lease is renewed. */
  readonly told = ({ fresh, since, busy, done }: Leading): void => {
    this.#busy = new Set(busy);
    for (const name of done) this.#done.add(name);
    if (fresh) this.#waiting.clear();
    for (const job of this.#waiting) {
      if (this.#busy.has(job.name)) continue;
      this.#waiting.delete(job);
      this.#begin(job);
    }
    if (fresh) for (const job of this.#jobs) this.#makeUp(job, since);
  };

  /** @returns the method with tracked runs. Each run is counted under the job's current name. */
  tracked(job: { readonly name: string }, method: (...args: unknown[]) => unknown) {
    const track = this.track.bind(this);
    return function (this: unknown, ...args: unknown[]) {
      return track(job.name, () => method.apply(this, args));
    };
  }

  /** Runs a job's method. Reports the run first, because the method may block this process. */
  async track<R>(name: string, run: () => R): Promise<Awaited<R>> {
    const before = this.#running.get(name) ?? 0;
    this.#running.set(name, before + 1);
    if (before === 0) this.#tellRunning();
    try {
      const result = await run();
      this.count(name, 'succeeded');
      return result;
    } catch (error) {
      this.count(name, 'failed');
      throw error;
    } finally {
      const left = this.#running.get(name)! - 1;
      if (left > 0) this.#running.set(name, left);
      else this.#running.delete(name);
      if (left === 0) this.#tellRunning();
    }
  }

  /** Runs the job if it was due after `since`, when the last leader lost its lease. */
  #makeUp(job: KnownJob, since: number | undefined): void {
    if (job.kind === 'timeout') {
      if (job.missed > -Infinity) void this.#begin(job);
    } else if (since === undefined) {
      return; // no run was missed, because this process is the first leader
    } else if (job.kind === 'interval') {
      if (job.missed > since) void this.#begin(job);
    } else {
      const due = job.owed?.(Math.max(since, handledBy(job)), Date.now());
      if (due === undefined) return;
      handle(job, due);
      void this.#begin(job);
    }
  }

  #begin(job: KnownJob): unknown {
    if (job.kind === 'timeout') {
      if (this.#done.has(job.name)) return undefined;
      this.#done.add(job.name);
      this.#tellRunning(job.name);
    } else if (this.#busy.has(job.name)) {
      this.#waiting.add(job);
      this.count(job.name, 'skipped');
      return undefined;
    }
    return job.run();
  }

  #tellRunning(done?: string): void {
    this.role().tellRunning(this, [...this.#running.keys()], done);
  }
}

function handle(job: KnownJob, due: number): void {
  job.handled = due;
  job.clock = clockMs();
}

/** The last handled due time; `-Infinity` if the clock was set since, because the times are due again. */
function handledBy({ handled, clock }: KnownJob): number {
  return wasClockSet(clock) ? -Infinity : handled;
}
