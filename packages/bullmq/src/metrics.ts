import type { Queue } from 'bullmq';
import type { MetricsClient } from 'nestjs-cluster/extension';

const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
const STATES = ['waiting', 'active', 'delayed', 'failed'] as const;

/** How a queued call can end for its caller. */
export type CallOutcome = 'completed' | 'failed' | 'timeout' | 'aborted' | 'rejected' | 'local';

/** Metrics of queued calls, and of the jobs that this process runs. */
export class QueueMetrics {
  readonly #calls;
  readonly #run;
  readonly all: readonly object[];

  /** @param queues the queues whose jobs are counted; no numbers are shown while Redis is away. */
  constructor({ Counter, Gauge, Histogram }: MetricsClient, queues: readonly Queue[]) {
    this.#calls = new Counter({
      name: 'nestjs_cluster_queue_calls_total',
      help: 'Queued calls, by how they ended',
      labelNames: ['task', 'outcome'],
      registers: [],
    });
    this.#run = new Histogram({
      name: 'nestjs_cluster_queue_run_seconds',
      help: 'Time that jobs ran in this process',
      labelNames: ['task'],
      buckets: BUCKETS,
      registers: [],
    });
    const jobs = new Gauge({
      name: 'nestjs_cluster_queue_jobs',
      help: 'Jobs in Redis, of all machines',
      labelNames: ['queue', 'state'],
      registers: [],
      aggregator: 'max', // all workers report the same numbers
      async collect() {
        this.reset();
        for (const queue of queues) {
          const counts = await queue.getJobCounts(...STATES).catch(() => ({}));
          for (const [state, count] of Object.entries(counts)) {
            this.set({ queue: queue.name, state }, count);
          }
        }
      },
    });
    this.all = [this.#calls, this.#run, jobs];
  }

  ended(task: string, outcome: CallOutcome): void {
    this.#calls.inc({ task, outcome });
  }

  ran(task: string, ms: number): void {
    this.#run.observe({ task }, ms / 1_000);
  }
}
