// What workers share, by the hub and by Redis, in the same processes: which of both serves is chosen
// with each request. Worker k listens on PORT + k; the primary answers on PORT + 99 how late its
// event loop was.
//
// PORT, WORKERS, ADAPTER (express or fastify), REDIS (port)
// PARTS     what the app has: throttler, cache, lock, events, socket.io; with commas
// IMPORTED  1: every entry is imported, and none is used
import 'reflect-metadata';
import http from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { bootstrap } from 'nestjs-cluster/bootstrap';

const PORT = Number(process.env.PORT);
/** What the histogram counts is the way from one tick of its timer to the next. */
const RESOLUTION_MS = 10;

const runtime = await bootstrap(
  async () => {
    const { createSharedApp } = await import('./shared/shared-app.mjs');
    return createSharedApp();
  },
  {
    port: PORT,
    host: '127.0.0.1',
    workers: Number(process.env.WORKERS ?? 2),
    balancing: 'ports',
    control: false,
  },
);

if (runtime.role === 'primary' && process.env.PARTS) {
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delays.enable();
  const ms = (nanos) => Math.max(0, nanos / 1e6 - RESOLUTION_MS);
  http
    .createServer((_request, response) => {
      response.end(JSON.stringify({ p99Ms: ms(delays.percentile(99)), maxMs: ms(delays.max) }));
      delays.reset();
    })
    .listen(PORT + 99, '127.0.0.1');
}
