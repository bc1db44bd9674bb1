// The app that chaos is made with: every way in that a Nest app has, and routes that break it.
//
// CHAOS_OPTIONS    options of bootstrap(), JSON
// CHAOS_ADAPTER    express or fastify
// CHAOS_REST       the file that the primary writes at SIGUSR2, see `reportAtRest()`
import { bootstrap } from 'nestjs-cluster/bootstrap';
import cluster from 'node:cluster';
import { renameSync, writeFileSync } from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const KEEP_ALIVE_MS = 65_000;
const MEGABYTE = 2 ** 20;
/** So that the answer is out before. */
const SOON_MS = 20;

/** Starts a release: what its main.mjs calls. */
export async function start() {
  // First: it may be asked as soon as its workers are ready.
  if (cluster.isPrimary) reportAtRest(process.env.CHAOS_REST);
  await bootstrap(createApp, JSON.parse(process.env.CHAOS_OPTIONS));
}

async function createApp() {
  await import('reflect-metadata');
  const { Module, RequestMethod } = await import('@nestjs/common');
  const { NestFactory } = await import('@nestjs/core');
  const { ClusterModule } = await import('nestjs-cluster');
  const { Routes, Tasks } = await import('./routes.mjs');
  const { WebSocketServer } = await import('ws');

  class AppModule {
    configure(consumer) {
      consumer.apply(breakWhenAsked).forRoutes({ path: 'faults/*path', method: RequestMethod.ALL });
    }
  }
  Module({ imports: [ClusterModule.forRoot()], controllers: [Routes, Tasks] })(AppModule);
  const adapter =
    process.env.CHAOS_ADAPTER === 'fastify'
      ? [new (await import('@nestjs/platform-fastify')).FastifyAdapter()]
      : [];
  const app = await NestFactory.create(AppModule, ...adapter, { logger: ['error', 'warn'] });
  const server = app.getHttpServer();
  // Names the worker in each response. If a connection's next request is lost, the client knows
  // which worker had it.
  server.prependListener('request', (_request, response) => {
    response.setHeader('X-Worker', process.pid);
  });
  // Node's default is 5 s. A process that was frozen for longer would reset connections on which
  // requests have arrived.
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  const webSockets = new WebSocketServer({ server });
  webSockets.on('headers', (headers) => headers.push(`X-Worker: ${process.pid}`));
  webSockets.on('connection', (socket) => {
    socket.on('error', () => {}); // reported by its close
    socket.on('message', (data) => socket.send(data, { binary: false }));
  });
  return app;
}

const leaked = [];

/** Each breaks the worker that answers it, after the answer if there is time for one. */
const FAULTS = {
  exit: () => void setTimeout(() => process.exit(3), SOON_MS),
  abort: () => void setTimeout(() => process.abort(), SOON_MS),
  throw() {
    setTimeout(() => {
      throw new Error('thrown outside of a request');
    }, SOON_MS);
  },
  spin() {
    for (;;);
  },
  /** In small steps, so that the event loop keeps running. */
  async leak(megabytes) {
    for (let held = 0; held < Number(megabytes); held += 2) {
      leaked.push(Buffer.alloc(2 * MEGABYTE, 1));
      await turn();
    }
  },
};

/** Middleware for `/faults/<name>/<argument>`. No route has these URLs. */
async function breakWhenAsked({ originalUrl, url }, response) {
  const [, , name, argument] = (originalUrl ?? url).split('/');
  await FAULTS[name](argument);
  response.statusCode = 200;
  response.end(name);
}

/** At SIGUSR2 the primary writes the size of its heap, without garbage, to a file. */
function reportAtRest(file) {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc');
  process.on('SIGUSR2', () => {
    collectGarbage();
    writeFileSync(`${file}.new`, JSON.stringify({ heapBytes: process.memoryUsage().heapUsed }));
    renameSync(`${file}.new`, file);
  });
}
