import type { JobOutcome } from '../../contract/snapshot/index.js';
import type { JobMetrics } from './job-metrics.js';
import type { MetricsEndpoint } from './metrics.endpoint.js';

/** Counts the runs of jobs where the app is measured. prom-client is loaded nowhere else. */
export class JobCounter {
  #metrics: JobMetrics | undefined;

  async start(endpoint: MetricsEndpoint | undefined): Promise<void> {
    await endpoint?.extend(async (prefix) => {
      const { JobMetrics } = await import('./job-metrics.js');
      this.#metrics = new JobMetrics(prefix);
      return { all: this.#metrics.all, labelled: [] };
    });
  }

  readonly count = (job: string, outcome: JobOutcome): void => this.#metrics?.count(job, outcome);
}
