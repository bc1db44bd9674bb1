import type { Queue } from 'bullmq';
import type { MetricsClient } from 'nestjs-cluster/extension';

const STATES = ['waiting', 'active', 'delayed', 'failed'] as const;

/** The number of jobs in Redis, of all machines. Nothing is shown while Redis is away. */
export function jobsGauge({ Gauge }: MetricsClient, queues: readonly Queue[]): object {
  return new Gauge({
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
}
