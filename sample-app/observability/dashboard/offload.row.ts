import { OpsPerSecond, PercentUnit, Seconds, Short } from '@grafana/grafana-foundation-sdk/units';
import { type Row, timeSeries } from './panels.js';
import { quantile, rate, select } from './queries.js';

const TASKS = 'nestjs_cluster_offload_tasks_total';

/** Calls of `@CpuBound()` methods. */
export const offload: Row = {
  title: 'CPU-bound methods',
  panels: [
    timeSeries({
      title: 'Calls by task',
      description: 'A second, however they ended.',
      unit: OpsPerSecond,
      stacked: true,
      queries: { '{{task}}': `sum by (task) (${rate(TASKS)})` },
    }),
    timeSeries({
      title: 'Calls by outcome',
      description:
        'rejected: the queue was full. queue_timeout: waited too long. Both are 503 for the client.',
      unit: OpsPerSecond,
      stacked: true,
      queries: { '{{outcome}}': `sum by (outcome) (${rate(TASKS)})` },
    }),
    timeSeries({
      title: 'Refused by task',
      description: 'Share of the calls that were refused with 503.',
      unit: PercentUnit,
      limit: 0.01,
      queries: {
        '{{task}}': `sum by (task) (${rate(TASKS, 'outcome=~"rejected|queue_timeout"')}) / sum by (task) (${rate(TASKS)})`,
      },
    }),
    timeSeries({
      title: 'Wait for a thread',
      description:
        'Calls wait when all threads compute. More threads help only while cores are free.',
      unit: Seconds,
      limit: 1,
      queries: {
        '{{task}} p50': quantile(0.5, 'nestjs_cluster_offload_wait_seconds', 'task'),
        '{{task}} p99': quantile(0.99, 'nestjs_cluster_offload_wait_seconds', 'task'),
      },
    }),
    timeSeries({
      title: 'Run',
      description: 'The way to the thread and back included.',
      unit: Seconds,
      queries: {
        '{{task}} p50': quantile(0.5, 'nestjs_cluster_offload_run_seconds', 'task'),
        '{{task}} p99': quantile(0.99, 'nestjs_cluster_offload_run_seconds', 'task'),
      },
    }),
    timeSeries({
      title: 'Busy threads',
      description: 'Threads that compute, on average. As many as there are: calls begin to wait.',
      unit: Short,
      stacked: true,
      queries: {
        '{{task}}': `sum by (task) (${rate('nestjs_cluster_offload_run_seconds_sum')})`,
      },
    }),
    timeSeries({
      title: 'Queue',
      description: 'Calls that wait, by worker. At offload.maxQueue further ones are refused.',
      unit: Short,
      stacked: true,
      queries: {
        '{{instance}} worker {{worker}}': select('nestjs_cluster_offload_queue_size'),
      },
    }),
    timeSeries({
      title: 'Threads',
      description:
        'Threads of each worker; 0 where methods run on the event loop. Of their time, the share in which they compute.',
      unit: Short,
      queries: {
        '{{instance}} worker {{worker}}': select('nestjs_cluster_offload_threads'),
        '{{instance}} worker {{worker}} busy': select(
          'nestjs_cluster_worker_thread_utilization_ratio',
        ),
      },
    }),
  ],
};
