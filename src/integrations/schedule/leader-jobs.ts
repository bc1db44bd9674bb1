import { clockMs, wasClockSet } from '../../contract/ipc/machine-clock.js';
import type { LeaderRole, Leading } from '../../contract/snapshot/index.js';
import type { JobOutcome } from './job-metrics.js';

/** Something that one worker alone is to run; each worker has it. Times are of `Date.now()`. */
export interface Job {
  readonly name: string;
  /** At times that are the same in every worker; at times of its own; or once in the cluster's life. */
  readonly kind: 'cron' | 'interval' | 'timeout';
  readonly run: () => unknown;
  /** The time at which a cron was due last, after `since` and up to `now`. */
  readonly owed?: (since: number, now: number) => number | undefined;
}

interface KnownJob extends Job {
  /** The last time that was due and is taken care of here. */
  handled: number;
  /** The time of the clock then. */
  clock: number;
  /** When it was due last while another worker led. */
  missed: number;
}

/**
 * Lets jobs run in the worker that leads, and makes up for what fell into a change: of each job one
 * run at most. A job does not begin while it runs in another worker.
 */
export class LeaderJobs {
  readonly #jobs = new Set<KnownJob>();
  readonly #running = new Map<string, number>();
  /** Put off until it has ended elsewhere. */
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

  /** In one line. `everywhere`: jobs that are not of these. */
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

  /** @returns what its timer is to call, of a cron with the time for which it was due. */
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
   * That name, or with a number where a job has it. It is the same in every worker: they find the
   * same jobs in the same order.
   */
  freeName(name: string): string {
    const { names } = this;
    let free = name;
    for (let count = 2; names.includes(free); count += 1) free = `${name}#${count}`;
    return free;
  }

  /** It is not made up for any more. */
  remove(name: string): void {
    for (const job of this.#jobs) {
      if (job.name !== name) continue;
      this.#jobs.delete(job);
      this.#waiting.delete(job);
    }
  }

  /** The app is closed: nothing is made up for any more. */
  close(): void {
    this.#jobs.clear();
    this.#waiting.clear();
  }

  /** This process comes to lead, or leads on. */
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

  /** @returns the method. Its runs count for the job, by the name that the job then has. */
  tracked(job: { readonly name: string }, method: (...args: unknown[]) => unknown) {
    const track = this.track.bind(this);
    return function (this: unknown, ...args: unknown[]) {
      return track(job.name, () => method.apply(this, args));
    };
  }

  /** Runs what a job consists of: others are told before, in case that it blocks this process. */
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
