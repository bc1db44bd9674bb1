import type { LeaderRole, Leading, MetricsClient } from '../contract/snapshot/types.js';
import { named } from '../contract/snapshot/prometheus.js';

/** Each worker has its own timer for the job. A `timeout` job runs once in the cluster. */
export interface TimerJob {
  readonly name: string;
  readonly kind: 'interval' | 'timeout';
  readonly run: () => unknown;
}

/** Runs jobs only if this worker is the leader. */
export class LeaderJobs {
  readonly #names = new Set<string>();
  #running = 0;
  /** The `timeout` jobs that were due while this worker was not the leader. */
  readonly #waiting = new Set<TimerJob>();
  /** Names of the `timeout` jobs that have started, in this or another worker. */
  readonly #done = new Set<string>();
  /** Set at startup if the app has metrics. */
  metrics: JobMetrics | undefined;

  constructor(private readonly role: () => LeaderRole) {}

  /** One line for the log. @param everywhere the number of jobs that run in all workers. */
  summary(everywhere: number): string {
    const names = [...this.#names];
    const jobs = names.length === 1 ? '1 scheduled job runs' : `${names.length} scheduled jobs run`;
    return (
      `${jobs} in one worker, the leader: ${names.join(', ') || 'none'}` +
      (everywhere > 0 ? `; ${everywhere} run in every worker` : '')
    );
  }

  /** Whether a job is running in this process. A drain waits for it. */
  get isRunning(): boolean {
    return this.#running > 0;
  }

  /**
   * Reserves a name. Appends a number if another job has the name. All workers find the same jobs in
   * the same order, so a job has the same name in each of them.
   */
  addName(name: string): string {
    let free = name;
    for (let count = 2; this.#names.has(free); count += 1) free = `${name}#${count}`;
    this.#names.add(free);
    return free;
  }

  removeName(name: string): void {
    this.#names.delete(name);
  }

  /** @returns the function that the job's timer must call. */
  timed(job: TimerJob): () => unknown {
    return () => {
      if (this.role().leads) return this.#begin(job);
      if (job.kind === 'timeout') this.#waiting.add(job);
      return undefined;
    };
  }

  /** Drops waiting jobs. Called when the app closes. */
  close(): void {
    this.#waiting.clear();
  }

  /** Called when this worker becomes the leader, and when its lease is renewed. */
  lead({ done }: Leading): void {
    for (const name of done) this.#done.add(name);
    for (const job of this.#waiting) {
      this.#waiting.delete(job);
      void this.#begin(job);
    }
  }

  /** Wraps the method so that its runs are counted under the job's current name. */
  tracked(job: { readonly name: string }, method: (...args: unknown[]) => unknown) {
    const track = (run: () => unknown) => this.#track(job.name, run);
    return function (this: unknown, ...args: unknown[]) {
      return track(() => method.apply(this, args));
    };
  }

  async #track(name: string, run: () => unknown): Promise<unknown> {
    this.#running += 1;
    try {
      const result = await run();
      this.metrics?.count(name, 'succeeded');
      return result;
    } catch (error) {
      this.metrics?.count(name, 'failed');
      throw error;
    } finally {
      this.#running -= 1;
    }
  }

  #begin(job: TimerJob): unknown {
    if (job.kind === 'timeout') {
      if (this.#done.has(job.name)) return undefined;
      this.#done.add(job.name);
      this.role().begun(job.name); // before the run, because the job may block this process
    }
    return job.run();
  }
}

const OUTCOMES = ['succeeded', 'failed'] as const;

/** Maximum number of `job` label values, because an app may have any number of jobs. Others share one label. */
const MAX_NAMES = 200;
const OTHER = 'OTHER';

/** Counts the runs of jobs. A scrape sums the counts of all workers. */
export class JobMetrics {
  readonly #runs: InstanceType<MetricsClient['Counter']>;
  readonly #names = new Set<string>();

  constructor({ Counter }: MetricsClient) {
    const help = 'Runs of scheduled jobs on the leader, by outcome';
    this.#runs = new Counter({ ...named('jobs_total', help), labelNames: ['job', 'outcome'] });
  }

  get all(): readonly object[] {
    return [this.#runs];
  }

  count(name: string, outcome: (typeof OUTCOMES)[number]): void {
    const job = this.#names.has(name) || this.#names.size < MAX_NAMES ? name : OTHER;
    if (!this.#names.has(job)) {
      this.#names.add(job);
      // Each time series starts at 0, so that rate() counts the first event.
      for (const each of OUTCOMES) this.#runs.inc({ job, outcome: each }, 0);
    }
    this.#runs.inc({ job, outcome });
  }
}
