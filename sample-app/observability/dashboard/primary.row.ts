import { BytesIEC, PercentUnit, Seconds, Short } from '@grafana/grafana-foundation-sdk/units';
import { type Row, timeSeries } from './panels.js';
import { rate, select } from './queries.js';

/** The process that supervises, and the metrics themselves. */
export const primary: Row = {
  title: 'Primary and metrics',
  panels: [
    timeSeries({
      title: 'CPU, event loop, garbage collection',
      description: 'The primary should do next to nothing, except under round-robin balancing.',
      unit: PercentUnit,
      queries: {
        '{{instance}} CPU': rate('nestjs_cluster_primary_cpu_seconds_total'),
        '{{instance}} event loop': select('nestjs_cluster_primary_event_loop_utilization_ratio'),
        '{{instance}} garbage collection': rate('nestjs_cluster_primary_gc_seconds_total'),
      },
    }),
    timeSeries({
      title: 'Event loop delay, p99',
      description: 'While the primary is blocked, no worker is replaced and no scrape answered.',
      unit: Seconds,
      limit: 0.2,
      queries: { '{{instance}}': select('nestjs_cluster_primary_event_loop_delay_p99_seconds') },
    }),
    timeSeries({
      title: 'Memory',
      description: 'Of the primary. It should stay where it is, whatever its workers do.',
      unit: BytesIEC,
      queries: {
        '{{instance}} resident': select('nestjs_cluster_primary_resident_memory_bytes'),
        '{{instance}} heap': select('nestjs_cluster_primary_heap_used_bytes'),
      },
    }),
    timeSeries({
      title: 'Uptime',
      description: 'Of the primary.',
      unit: Seconds,
      queries: { '{{instance}}': select('nestjs_cluster_primary_uptime_seconds') },
    }),
    timeSeries({
      title: 'Reloads',
      description: 'Rolling reloads by how they ended.',
      unit: Short,
      stacked: true,
      queries: {
        '{{instance}} {{outcome}}': `increase(${select('nestjs_cluster_reloads_total')}[$__rate_interval])`,
      },
    }),
    timeSeries({
      title: 'Generation',
      description: 'Number of the last reload that was completed.',
      unit: Short,
      queries: {
        '{{instance}} {{balancing}}': `${select('nestjs_cluster_generation')} * on (job, instance) group_left (balancing) ${select('nestjs_cluster_info')}`,
      },
    }),
    timeSeries({
      title: 'Leader',
      description: 'Slot of the worker that runs scheduled jobs. No line: no worker can lead.',
      unit: Short,
      queries: { '{{instance}} {{worker}}': `${select('nestjs_cluster_leader')} == 1` },
    }),
    timeSeries({
      title: 'Scrapes',
      description: 'How long Prometheus waits for the metrics.',
      unit: Seconds,
      queries: { '{{instance}}': select('scrape_duration_seconds') },
    }),
    timeSeries({
      title: 'Samples',
      description: 'Of each scrape. They grow with the routes, and with the workers.',
      unit: Short,
      queries: {
        '{{instance}}': select('scrape_samples_scraped'),
      },
    }),
    timeSeries({
      title: 'Lost lines, and stale state',
      description:
        'Lines of the log that the primary could not write; age of the state where the primary did not answer.',
      unit: Short,
      queries: {
        '{{instance}} log lines': `increase(${select('nestjs_cluster_primary_log_lines_dropped_total')}[$__rate_interval])`,
        '{{instance}} age of the state': select('nestjs_cluster_snapshot_age_seconds'),
      },
    }),
  ],
};
