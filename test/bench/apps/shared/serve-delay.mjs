import http from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';

/** Interval of the histogram's timer. The histogram records the time from one tick to the next. */
const RESOLUTION_MS = 10;

/** Reports on `port` how late the event loop of this process was since the last request. */
export function serveDelay(port) {
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delays.enable();
  const ms = (nanos) => Math.max(0, nanos / 1e6 - RESOLUTION_MS);
  http
    .createServer((_request, response) => {
      response.end(JSON.stringify({ p99Ms: ms(delays.percentile(99)), maxMs: ms(delays.max) }));
      delays.reset();
    })
    .listen(port, '127.0.0.1');
}
