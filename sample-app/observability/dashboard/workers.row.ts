import {
  BytesIEC,
  CountsPerSecond,
  PercentUnit,
  RequestsPerSecond,
  Seconds,
  Short,
} from '@grafana/grafana-foundation-sdk/units';
import { type Row, states, timeSeries } from './panels.js';
import { rate, select, unevenness } from './queries.js';

const WORKER = '{{instance}} worker {{worker}}';

/** Each worker, and how even they are. */
export const workers: Row = {
  title: 'Workers',
  panels: [
    states({
      title: 'Ready',
      description: 'Green: ready and answering. A reload shows as a short red mark in each slot.',
      states: [
        ['not ready', 'red'],
        ['ready', 'green'],
      ],
      queries: { [WORKER]: select('nestjs_cluster_worker_up') },
    }),
    timeSeries({
      title: 'Workers by state',
      description: 'While a reload runs, up to a quarter more than desired, rounded up.',
      unit: Short,
      queries: {
        '{{state}}': `sum by (state) (${select('nestjs_cluster_workers')})`,
        desired: `sum(${select('nestjs_cluster_workers_desired')})`,
      },
    }),
    timeSeries({
      title: 'Connections that wait',
      description: 'Connections in the kernel that no worker has accepted.',
      unit: Short,
      queries: {
        '{{instance}} {{socket}}': select('nestjs_cluster_accept_backlog'),
      },
    }),
    timeSeries({
      title: 'Failures by cause',
      description:
        'Workers that were replaced because they failed, or grew too large (memory). Reloads do not count.',
      unit: Short,
      stacked: true,
      queries: {
        '{{cause}}': `sum by (cause) (increase(${select('nestjs_cluster_worker_restarts_total')}[$__rate_interval]))`,
      },
    }),
    timeSeries({
      title: 'Event loop utilization',
      description:
        'Share of the time that the event loop is busy. Above 90 % for minutes is too much.',
      unit: PercentUnit,
      max: 1,
      limit: 0.9,
      queries: { [WORKER]: select('nestjs_cluster_worker_event_loop_utilization_ratio') },
    }),
    timeSeries({
      title: 'Event loop delay, p99',
      description: 'How long something blocks the event loop, and every request with it.',
      unit: Seconds,
      limit: 0.2,
      queries: { [WORKER]: select('nestjs_cluster_worker_event_loop_delay_p99_seconds') },
    }),
    timeSeries({
      title: 'CPU',
      description: 'Cores that each worker uses, its threads of @CpuBound() methods included.',
      unit: Short,
      queries: { [WORKER]: rate('nestjs_cluster_worker_cpu_seconds_total') },
    }),
    timeSeries({
      title: 'Resident memory',
      description: 'What the system counts. It should level out within an hour of a start.',
      unit: BytesIEC,
      queries: { [WORKER]: select('nestjs_cluster_worker_resident_memory_bytes') },
    }),
    timeSeries({
      title: 'JavaScript heap in use',
      description: 'A saw-tooth is as it should be; what counts is whether its lowest points rise.',
      unit: BytesIEC,
      queries: { [WORKER]: select('nestjs_cluster_worker_heap_used_bytes') },
    }),
    timeSeries({
      title: 'Garbage collection',
      description: 'Share of the time spent in it. Above 10 % the heap is too small for the load.',
      unit: PercentUnit,
      limit: 0.1,
      queries: { [WORKER]: rate('nestjs_cluster_worker_gc_seconds_total') },
    }),
    timeSeries({
      title: 'Requests',
      description: 'Answered a second by each worker.',
      unit: RequestsPerSecond,
      queries: { [WORKER]: rate('nestjs_cluster_worker_requests_total') },
    }),
    timeSeries({
      title: 'Open connections',
      description: 'A new worker begins with none; rebalancing fills it.',
      unit: Short,
      queries: { [WORKER]: select('nestjs_cluster_worker_open_connections') },
    }),
    timeSeries({
      title: 'Evenness',
      description:
        'The busiest worker over the mean: 1 is even, the number of workers means that one has it all.',
      unit: Short,
      queries: {
        '{{instance}} requests': unevenness(rate('nestjs_cluster_worker_requests_total')),
        '{{instance}} connections': unevenness(select('nestjs_cluster_worker_open_connections')),
        '{{instance}} utilization': unevenness(
          select('nestjs_cluster_worker_event_loop_utilization_ratio'),
        ),
      },
    }),
    timeSeries({
      title: 'Connections moved',
      description: 'Closed because their clients were asked to connect again, for the balance.',
      unit: CountsPerSecond,
      queries: { [WORKER]: rate('nestjs_cluster_rebalanced_connections_total') },
    }),
    timeSeries({
      title: 'Turned away, lost',
      description:
        'Connections beyond the limit of open files; lines of the log that could not be written.',
      unit: CountsPerSecond,
      queries: {
        [`${WORKER} connections`]: rate('nestjs_cluster_worker_dropped_connections_total'),
        [`${WORKER} log lines`]: rate('nestjs_cluster_log_lines_dropped_total'),
      },
    }),
    timeSeries({
      title: 'Age of the last heartbeat',
      description: 'One that does not answer for hangTimeoutMs (10 s) is killed.',
      unit: Seconds,
      queries: { [WORKER]: select('nestjs_cluster_worker_heartbeat_age_seconds') },
    }),
    timeSeries({
      title: 'Age of the metrics',
      description:
        'Above 0 where the worker did not answer a scrape and its last report stands for it.',
      unit: Seconds,
      queries: { [WORKER]: select('nestjs_cluster_worker_snapshot_age_seconds') },
    }),
    states({
      title: 'Crash loops',
      description: 'Red: its workers fail again and again.',
      states: [
        ['stable', 'green'],
        ['crash loop', 'red'],
      ],
      queries: { [WORKER]: select('nestjs_cluster_worker_degraded') },
    }),
    timeSeries({
      title: 'Uptime',
      description: 'Since the fork.',
      unit: Seconds,
      queries: { [WORKER]: select('nestjs_cluster_worker_uptime_seconds') },
    }),
  ],
};
