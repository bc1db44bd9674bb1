import { Counter, type Metric } from 'prom-client';

/** `skipped`: the job was still running in another worker, and runs once it has ended there. */
const JOB_OUTCOMES = ['succeeded', 'failed', 'skipped'] as const;
export type JobOutcome = (typeof JOB_OUTCOMES)[number];

/** Apps may name jobs after what they have many of. */
const MAX_NAMES = 200;
const OTHER = 'OTHER';

/** Counts the runs of jobs, over all workers together. */
export class JobMetrics {
  readonly #runs: Counter<'job' | 'outcome'>;
  readonly #names = new Set<string>();

  constructor(prefix: string) {
    this.#runs = new Counter({
      name: `${prefix}nestjs_cluster_jobs_total`,
      help: 'Runs of scheduled jobs that one worker alone runs, by how they ended',
      labelNames: ['job', 'outcome'],
      registers: [],
    });
  }

  get all(): readonly Metric[] {
    return [this.#runs];
  }

  count(name: string, outcome: JobOutcome): void {
    const job = this.#names.has(name) || this.#names.size < MAX_NAMES ? name : OTHER;
    if (!this.#names.has(job)) {
      this.#names.add(job);
      // A series that begins at its first event has no rate for it.
      for (const each of JOB_OUTCOMES) this.#runs.inc({ job, outcome: each }, 0);
    }
    this.#runs.inc({ job, outcome });
  }
}
