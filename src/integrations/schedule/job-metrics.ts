import type { MetricsClient } from '../../contract/snapshot/index.js';
import { named } from '../../contract/snapshot/prometheus.js';

const JOB_OUTCOMES = ['succeeded', 'failed'] as const;
export type JobOutcome = (typeof JOB_OUTCOMES)[number];

/** The maximum number of values of the label `job`; further jobs count as `OTHER`. Apps may add many jobs. */
const MAX_NAMES = 200;
const OTHER = 'OTHER';

/** Counts the runs of jobs, over all workers together. */
export class JobMetrics {
  readonly #runs: InstanceType<MetricsClient['Counter']>;
  readonly #names = new Set<string>();

  constructor({ Counter }: MetricsClient) {
    this.#runs = new Counter({
      ...named(
        'jobs_total',
        'Runs of scheduled jobs that one worker alone runs, by how they ended',
      ),
      labelNames: ['job', 'outcome'],
    });
  }

  get all(): readonly object[] {
    return [this.#runs];
  }

  count(name: string, outcome: JobOutcome): void {
    const job = this.#names.has(name) || this.#names.size < MAX_NAMES ? name : OTHER;
    if (!this.#names.has(job)) {
      this.#names.add(job);
      // Each time series begins at 0, so that rate() counts its first event.
      for (const each of JOB_OUTCOMES) this.#runs.inc({ job, outcome: each }, 0);
    }
    this.#runs.inc({ job, outcome });
  }
}
