import {
  BytesPerSecondIEC,
  BytesIEC,
  PercentUnit,
  RequestsPerSecond,
  Seconds,
  Short,
} from '@grafana/grafana-foundation-sdk/units';
import { type Row, timeSeries } from './panels.js';
import { mean, quantile, rate, select } from './queries.js';

const DURATION = 'http_request_duration_seconds';
const COUNT = `${DURATION}_count`;

/** Rate, errors and duration of what clients ask. */
export const requests: Row = {
  title: 'Requests',
  panels: [
    timeSeries({
      title: 'Rate by route',
      description: '`unmatched` is what no route matched.',
      unit: RequestsPerSecond,
      stacked: true,
      queries: { '{{method}} {{route}}': `sum by (method, route) (${rate(COUNT)})` },
    }),
    timeSeries({
      title: 'Rate by status',
      description: 'Answers a second by status code.',
      unit: RequestsPerSecond,
      stacked: true,
      queries: { '{{status_code}}': `sum by (status_code) (${rate(COUNT)})` },
    }),
    timeSeries({
      title: 'Errors by route',
      description: 'Share of the answers of a route with a status of 500 or above.',
      unit: PercentUnit,
      limit: 0.05,
      queries: {
        '{{route}}': `sum by (route) (${rate(COUNT, 'status_code=~"5.."')}) / sum by (route) (${rate(COUNT)})`,
      },
    }),
    timeSeries({
      title: 'Duration by route, p50',
      description:
        'Half of the requests take longer. Event streams and WebSockets are not counted.',
      unit: Seconds,
      queries: { '{{route}}': quantile(0.5, DURATION, 'route') },
    }),
    timeSeries({
      title: 'Duration by route, p99',
      description: 'One request in 100 takes longer. Exact to a bucket of the histogram.',
      unit: Seconds,
      queries: { '{{route}}': quantile(0.99, DURATION, 'route') },
    }),
    timeSeries({
      title: 'Duration by route, mean',
      description: 'Exact, where the quantiles are estimates.',
      unit: Seconds,
      queries: { '{{route}}': mean(DURATION, 'route') },
    }),
    timeSeries({
      title: 'Response size by route, mean',
      description: 'Bytes of an answer with its head. Not counted over HTTP/2.',
      unit: BytesIEC,
      queries: { '{{route}}': mean('http_response_size_bytes', 'route') },
    }),
    timeSeries({
      title: 'Response size by route, p99',
      description: 'One answer in 100 is larger. Exact to a bucket of the histogram.',
      unit: BytesIEC,
      queries: { '{{route}}': quantile(0.99, 'http_response_size_bytes', 'route') },
    }),
    timeSeries({
      title: 'Bytes sent by route',
      description: 'Bytes of answers a second.',
      unit: BytesPerSecondIEC,
      stacked: true,
      queries: { '{{route}}': `sum by (route) (${rate('http_response_size_bytes_sum')})` },
    }),
    timeSeries({
      title: 'Given up by clients',
      description:
        'Requests whose client went away before the answer was complete: too slow, or cut off.',
      unit: RequestsPerSecond,
      queries: {
        '{{method}} {{route}}': `sum by (method, route) (${rate('http_requests_aborted_total')})`,
      },
    }),
    timeSeries({
      title: 'In flight',
      description: 'Requests begun and not answered, by worker.',
      unit: Short,
      stacked: true,
      queries: {
        '{{instance}} worker {{worker}}': select('nestjs_cluster_worker_requests_in_flight'),
      },
    }),
    timeSeries({
      title: 'Cut off by drains',
      description:
        'Requests that were not answered when shutdown.drainTimeoutMs was over. Should be 0.',
      unit: Short,
      queries: {
        '{{instance}} worker {{worker}}': `increase(${select('nestjs_cluster_worker_aborted_requests_total')}[$__rate_interval])`,
      },
    }),
  ],
};
