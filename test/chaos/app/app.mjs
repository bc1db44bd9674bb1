// The app that chaos is made with: every way in that a Nest app has, and routes that break it.
//
// CHAOS_OPTIONS    options of bootstrap(), JSON
// CHAOS_ADAPTER    express or fastify
// CHAOS_RPC_PORT   port of the TCP microservice of the same app; without it there is none
// CHAOS_FAULTS     1: the faults of faults.mjs
// CHAOS_REST       file for what only the primary can tell of itself, written at SIGUSR2
import { bootstrap } from 'nestjs-cluster/bootstrap';
import cluster from 'node:cluster';
import { tellAtRest } from './rest.mjs';

const KEEP_ALIVE_MS = 65_000;

/** Starts a release: what its main.mjs calls. */
export async function start() {
  // First: it may be asked as soon as its workers are ready.
  if (cluster.isPrimary) tellAtRest(process.env.CHAOS_REST);
  await bootstrap(createApp, JSON.parse(process.env.CHAOS_OPTIONS));
}

async function createApp() {
  await import('reflect-metadata');
  const { Module, RequestMethod } = await import('@nestjs/common');
  const { NestFactory } = await import('@nestjs/core');
  const { ClusterModule } = await import('nestjs-cluster');
  const { Routes, Tasks } = await import('./routes.mjs');
  const { Shared, sharedProviders } = await import('./shared.mjs');
  const { serveWebSockets } = await import('./web-sockets.mjs');

  class AppModule {}
  Module({
    imports: [ClusterModule.forRoot()],
    controllers: [Routes, Tasks, Shared],
    providers: sharedProviders,
  })(AppModule);
  if (process.env.CHAOS_FAULTS === '1') {
    const { breakWhenAsked } = await import('./faults.mjs');
    AppModule.prototype.configure = (consumer) =>
      consumer.apply(breakWhenAsked).forRoutes({ path: 'faults/*path', method: RequestMethod.ALL });
  }
  const adapter =
    process.env.CHAOS_ADAPTER === 'fastify'
      ? [new (await import('@nestjs/platform-fastify')).FastifyAdapter()]
      : [];
  const app = await NestFactory.create(AppModule, ...adapter, { logger: ['error', 'warn'] });
  // Names the worker in each response. If a connection's next request is lost, the client knows
  // which worker had it.
  app.getHttpServer().prependListener('request', (_request, response) => {
    response.setHeader('X-Worker', process.pid);
  });
  // Node's default is 5 s. A process that was frozen for longer would reset connections on which
  // requests have arrived.
  app.getHttpServer().keepAliveTimeout = KEEP_ALIVE_MS;
  serveWebSockets(app.getHttpServer());
  if (process.env.CHAOS_RPC_PORT && cluster.isWorker) {
    const { Transport } = await import('@nestjs/microservices');
    const port = Number(process.env.CHAOS_RPC_PORT);
    app.connectMicroservice({ transport: Transport.TCP, options: { host: '127.0.0.1', port } });
    await app.startAllMicroservices();
  }
  return app;
}
