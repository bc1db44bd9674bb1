import { Counter, Gauge, Histogram } from 'prom-client';
import { setTimeout as delay } from 'node:timers/promises';
import { named } from '../../contract/snapshot/metric-names.js';
import type { QueueLengths } from './redis/queue-client.js';

const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** How a queued call can end for its caller. */
const OUTCOMES = ['completed', 'failed', 'timeout', 'aborted', 'rejected', 'local'] as const;
export type CallOutcome = (typeof OUTCOMES)[number];

/** The maximum time that a scrape waits for Redis. After that, the scrape shows no numbers of jobs. */
const COUNTS_MS = 300;

export type QueueMetrics = ReturnType<typeof queueMetrics>;

/**
 * Metrics of queued calls, and of the jobs that this process runs.
 *
 * @param lengths reads the number of jobs from Redis. Rejects while Redis is away.
 */
export function queueMetrics(
  tasks: readonly { readonly name: string; readonly queue?: string | undefined }[],
  lengths: () => Promise<QueueLengths>,
) {
  const calls = new Counter({
    ...named('queue_calls_total', 'Queued calls, by how they ended'),
    labelNames: ['task', 'outcome'],
  });
  const repliesDropped = new Counter({
    ...named('queue_replies_dropped_total', 'Replies that nobody waited for'),
    labelNames: ['reason'],
  });
  const attempts = new Counter({
    ...named('queue_attempts_total', 'Jobs that were begun, each time'),
    labelNames: ['queue'],
  });
  const stalled = new Counter({
    ...named('queue_stalled_total', 'Jobs whose consumer was lost'),
    labelNames: ['queue'],
  });
  const wait = new Histogram({
    ...named('queue_wait_seconds', 'Time that jobs waited for a consumer'),
    labelNames: ['queue'],
    buckets: BUCKETS,
  });
  const run = new Histogram({
    ...named('queue_run_seconds', 'Time that jobs ran'),
    labelNames: ['task'],
    buckets: BUCKETS,
  });
  const jobs = new Gauge({
    ...named('queue_jobs', 'Jobs in Redis, of all machines'),
    labelNames: ['queue', 'state'],
    // The maximum and not the sum, because all workers report the same numbers.
    aggregator: 'max',
    async collect() {
      this.reset();
      // Shows no numbers if Redis is slow or away.
      const late = delay(COUNTS_MS, {}, { ref: false });
      const counts = await Promise.race([lengths().catch(() => ({})), late]);
      for (const [queue, states] of Object.entries<QueueLengths[string]>(counts)) {
        for (const [state, count] of Object.entries(states)) this.set({ queue, state }, count);
      }
    },
  });
  // Each time series begins at 0, so that rate() counts its first event.
  for (const { name, queue = '' } of tasks) {
    for (const outcome of OUTCOMES) calls.inc({ task: name, outcome }, 0);
    attempts.inc({ queue }, 0);
    stalled.inc({ queue }, 0);
  }
  return { calls, repliesDropped, attempts, stalled, wait, run, jobs };
}
