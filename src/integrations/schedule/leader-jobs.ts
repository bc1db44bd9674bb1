import { clockMs, wasClockSet } from '../../contract/ipc/machine-clock.js';
import type { LeaderRole, Leading } from '../../contract/snapshot/index.js';
import type { JobOutcome } from './job-metrics.js';

/** A job that every worker has and only one runs. Times are of `Date.now()`. */
export interface Job {
  readonly name: string;
  /** `cron`: at the same times in every worker. `timeout`: once in the life of the cluster. */
  readonly kind: 'cron' | 'interval' | 'timeout';
  readonly run: () => unknown;
  /** The time at which a cron was due last, after `since` and up to `now`. */
  readonly owed?: (since: number, now: number) => number | undefined;
}

interface KnownJob extends Job {
  /** The last due time that was handled here. */
  handled: number;
  /** The machine clock at that moment, to notice that it was set back. */
  clock: number;
  /** The last due time while another worker led. */
  missed: number;
}

/**
 * Runs jobs in the worker that leads. After a change of the leader it makes up for missed runs, at
 * most one for each job. A job does not begin while it runs in another worker.
 */
export class LeaderJobs {
  readonly #jobs = new Set<KnownJob>();
  readonly #running = new Map<string, number>();
  /** Jobs that wait until they have ended in another worker. */
  readonly #waiting = new Set<KnownJob>();
  #busy: ReadonlySet<string> = new Set();
  readonly #done = new Set<string>();

  constructor(
    private readonly role: () => LeaderRole,
    private readonly count: (job: string, outcome: JobOutcome) => void,
  ) {}

  /** In the order in which they were found. */
  get names(): readonly string[] {
    return Array.from(this.#jobs, ({ name }) => name);
  }

  /** One line for the log. `everywhere`: how many jobs run in every worker. */
  summary(everywhere: number): string {
    const { names } = this;
    const jobs = names.length === 1 ? '1 scheduled job runs' : `${names.length} scheduled jobs run`;
    return (
      `${jobs} in one worker, the leader: ${names.join(', ') || 'none'}` +
      (everywhere > 0 ? `; ${everywhere} run in every worker` : '')
    );
  }

  /** Whether one runs, for a drain to wait for. */
  get isRunning(): boolean {
    return this.#running.size > 0;
  }

  /** @returns the function that the job's timer has to call, with the due time if it is a cron. */
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
   * The name, with a number if another job has it. The result is the same in every worker, since
   * they find the same jobs in the same order.
   */
  freeName(name: string): string {
    const { names } = this;
    let free = name;
    for (let count = 2; names.includes(free); count += 1) free = `${name}#${count}`;
    return free;
  }

  /** Forgets a job: it is no longer made up for. */
  remove(name: string): void {
    for (const job of this.#jobs) {
      if (job.name !== name) continue;
      this.#jobs.delete(job);
      this.#waiting.delete(job);
    }
  }

  /** Forgets all jobs, as the app is closed. */
  close(): void {
    this.#jobs.clear();
    this.#waiting.clear();
  }

  /** Called when this process becomes the leader, and when it is told again that it leads. */
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

  /** @returns the method with its runs counted, under the name that the job has at that time. */
  tracked(job: { readonly name: string }, method: (...args: unknown[]) => unknown) {
    const track = this.track.bind(this);
    return function (this: unknown, ...args: unknown[]) {
      return track(job.name, () => method.apply(this, args));
    };
  }

  /** Runs a job's method. Tells the cluster before, since the method may block this process. */
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

  /** Runs the jobs that were due between the last leader's time and now. */
  #makeUp(job: KnownJob, since: number | undefined): void {
    if (job.kind === 'timeout') {
      if (job.missed > -Infinity) void this.#begin(job);
    } else if (since === undefined) {
      return; // nobody led before: there is nothing to make up for
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

/** Times are due anew once the clock was set back. */
function handledBy({ handled, clock }: KnownJob): number {
  return wasClockSet(clock) ? -Infinity : handled;
}
