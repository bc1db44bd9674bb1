// One Nest app with one route, to be measured bare or with nestjs-cluster.
//
// ADAPTER   express (default) or fastify
// MODE      bare: one process that listens with reusePort; cluster: bootstrap() with two workers
// PORT
// WORKERS, OPTIONS   of bootstrap(): a number (2), JSON
// MODULE_OPTIONS     of ClusterModule.forRoot(): JSON
import 'reflect-metadata';

async function createApp(imports = []) {
  const { Controller, Get, Module } = await import('@nestjs/common');
  const { NestFactory } = await import('@nestjs/core');
  class AppController {
    hello() {
      return 'Hello World!';
    }
  }
  const descriptor = Object.getOwnPropertyDescriptor(AppController.prototype, 'hello');
  Get('hello')(AppController.prototype, 'hello', descriptor);
  Controller()(AppController);
  class AppModule {}
  Module({ imports, controllers: [AppController] })(AppModule);
  const adapter =
    process.env.ADAPTER === 'fastify'
      ? [new (await import('@nestjs/platform-fastify')).FastifyAdapter()]
      : [];
  return NestFactory.create(AppModule, ...adapter, { logger: ['error', 'warn'] });
}

const port = Number(process.env.PORT);
const host = '127.0.0.1';
if (process.env.MODE === 'bare') {
  const app = await createApp();
  // Both adapters hand an object on to server.listen() as it is.
  await app.listen({ port, host, reusePort: true });
} else {
  const { bootstrap } = await import('nestjs-cluster/bootstrap');
  await bootstrap(
    async () => {
      const { ClusterModule } = await import('nestjs-cluster');
      return createApp([ClusterModule.forRoot(JSON.parse(process.env.MODULE_OPTIONS ?? '{}'))]);
    },
    {
      port,
      host,
      workers: Number(process.env.WORKERS ?? 2),
      ...JSON.parse(process.env.OPTIONS ?? '{}'),
    },
  );
}
