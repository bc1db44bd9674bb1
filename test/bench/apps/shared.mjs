// Workers that share state through the hub and through Redis, in the same processes: each request
// names the system that serves it. Worker k listens on PORT + k. The primary reports on PORT + 99
// how late its event loop was.
//
// PORT, WORKERS, ADAPTER (express or fastify), REDIS (port)
// PARTS     parts of the app: throttler, cache, lock, events, socket.io; separated by commas
// IMPORTED  1: every entry of the package is imported, and none is used
import 'reflect-metadata';
import { bootstrap } from 'nestjs-cluster/bootstrap';
import { serveDelay } from './shared/serve-delay.mjs';

const PORT = Number(process.env.PORT);

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

if (runtime.role === 'primary' && process.env.PARTS) serveDelay(PORT + 99);
