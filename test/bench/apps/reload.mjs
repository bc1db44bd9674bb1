// The sample app as a cluster that reloads when it is told to, and says what its primary holds.
//
// PORT, WORKERS, CANARY_MS
import cluster from 'node:cluster';
import { readdirSync } from 'node:fs';
import { bootstrap } from 'nestjs-cluster/bootstrap';

const runtime = await bootstrap(
  async () => {
    const { createApp } = await import('../../../sample-app/dist/create-app.js');
    return createApp();
  },
  {
    host: '127.0.0.1',
    port: Number(process.env.PORT),
    workers: Number(process.env.WORKERS),
    reload: { canaryMs: Number(process.env.CANARY_MS) },
  },
);

if (runtime.role === 'primary') {
  process.on('message', (question) => {
    if (question === 'reload') void runtime.reload().then((result) => process.send(result));
    else process.send(held());
  });
}

/** Counts the resources that must not grow from reload to reload. */
function held() {
  globalThis.gc();
  return {
    descriptors: readdirSync('/proc/self/fd').length,
    listeners: process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0),
    workers: Object.keys(cluster.workers).length,
    heapUsed: process.memoryUsage().heapUsed,
    rss: process.memoryUsage.rss(),
  };
}
