import http from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';

/** What the histogram counts is the way from one tick of its timer to the next. */
const RESOLUTION_MS = 10;

/** Answers on `port` how late the event loop of this process was since it was asked last. */
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
