import {
  PercentUnit,
  RequestsPerSecond,
  Seconds,
  Short,
} from '@grafana/grafana-foundation-sdk/units';
import { type Row, stat } from './panels.js';
import { quantile, rate, select } from './queries.js';

/** Is anything wrong, and where to look. */
export const overview: Row = {
  title: 'Overview',
  panels: [
    stat({
      title: 'Firing alerts',
      description: 'Alerts of alerts.rules.yml that fire now.',
      unit: Short,
      queries: {
        alerts: `count(${select('ALERTS', 'alertname=~"NestjsCluster.+", alertstate="firing"')}) or vector(0)`,
      },
      colours: [
        [null, 'green'],
        [1, 'red'],
      ],
    }),
    stat({
      title: 'Workers ready of desired',
      description: 'Below 100 % for longer than a restart takes: see the row Workers.',
      unit: PercentUnit,
      queries: {
        ready: `sum(${select('nestjs_cluster_worker_up')}) / sum(${select('nestjs_cluster_workers_desired')})`,
      },
      colours: [
        [null, 'red'],
        [0.5, 'orange'],
        [1, 'green'],
      ],
      decimals: 0,
    }),
    stat({
      title: 'Requests',
      description: 'Answered a second, over all routes.',
      unit: RequestsPerSecond,
      queries: { requests: `sum(${rate('http_request_duration_seconds_count')})` },
      colours: [[null, 'blue']],
    }),
    stat({
      title: 'Errors',
      description: 'Share of the answers with a status of 500 or above.',
      unit: PercentUnit,
      queries: {
        errors: `(sum(${rate('http_request_duration_seconds_count', 'status_code=~"5.."')}) or vector(0)) / sum(${rate('http_request_duration_seconds_count')})`,
      },
      colours: [
        [null, 'green'],
        [0.01, 'orange'],
        [0.05, 'red'],
      ],
      decimals: 2,
    }),
    stat({
      title: 'Duration, p99',
      description: 'One request in 100 takes longer, over all routes.',
      unit: Seconds,
      queries: { p99: quantile(0.99, 'http_request_duration_seconds') },
      colours: [[null, 'blue']],
    }),
    stat({
      title: 'Busiest event loop',
      description:
        'Utilization of the busiest worker. Near 100 % its requests wait for each other.',
      unit: PercentUnit,
      queries: {
        utilization: `max(${select('nestjs_cluster_worker_event_loop_utilization_ratio')})`,
      },
      colours: [
        [null, 'green'],
        [0.7, 'orange'],
        [0.9, 'red'],
      ],
      decimals: 0,
    }),
    stat({
      title: 'Workers failed',
      description: 'Workers that failed or grew too large, in the time that is shown.',
      unit: Short,
      queries: {
        failed: `sum(increase(${select('nestjs_cluster_worker_restarts_total')}[$__range]))`,
      },
      colours: [
        [null, 'green'],
        [1, 'orange'],
        [5, 'red'],
      ],
      decimals: 0,
    }),
    stat({
      title: 'Reloads that failed',
      description: 'Deploys that did not come up, or were taken back, in the time that is shown.',
      unit: Short,
      queries: {
        failed: `sum(increase(${select('nestjs_cluster_reloads_total', 'outcome!="completed"')}[$__range]))`,
      },
      colours: [
        [null, 'green'],
        [1, 'red'],
      ],
      decimals: 0,
    }),
  ],
};
