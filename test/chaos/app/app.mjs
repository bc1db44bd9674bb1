// The app that chaos is made with: every way in that a Nest app has, and routes that break it.
//
// CHAOS_OPTIONS    options of bootstrap(), JSON
// CHAOS_ADAPTER    express or fastify
// CHAOS_RPC_PORT   port of the TCP microservice of the same app; without it there is none
// CHAOS_FAULTS     1: the routes of faults.mjs
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
  const { Module } = await import('@nestjs/common');
  const { NestFactory } = await import('@nestjs/core');
  const { ClusterModule } = await import('nestjs-cluster');
  const { Routes, Tasks } = await import('./routes.mjs');
  const { serveWebSockets } = await import('./web-sockets.mjs');
  const faults = process.env.CHAOS_FAULTS === '1' ? [(await import('./faults.mjs')).Faults] : [];

  class AppModule {}
  Module({
    imports: [ClusterModule.forRoot({ offload: { niceIncrement: 0 } })],
    controllers: [Routes, Tasks, ...faults],
  })(AppModule);
  const adapter =
    process.env.CHAOS_ADAPTER === 'fastify'
      ? [new (await import('@nestjs/platform-fastify')).FastifyAdapter()]
      : [];
  const app = await NestFactory.create(AppModule, ...adapter, { logger: ['error', 'warn'] });
  // Whose answer it is, on every answer: a client that loses the next one knows whom it had asked.
  app.getHttpServer().prependListener('request', (_request, response) => {
    response.setHeader('X-Worker', process.pid);
  });
  // Node's own is 5 s, and resets what was sent to a process that was frozen for longer.
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
