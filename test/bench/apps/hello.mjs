// One Nest app with one route, as a cluster.
//
// ADAPTER   express (default) or fastify
// PORT
// WORKERS, OPTIONS   of bootstrap(): a number, JSON
import 'reflect-metadata';
import { bootstrap } from 'nestjs-cluster/bootstrap';

async function createApp(imports) {
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

await bootstrap(
  async () => {
    const { ClusterModule } = await import('nestjs-cluster');
    return createApp([ClusterModule.forRoot()]);
  },
  {
    port: Number(process.env.PORT),
    host: '127.0.0.1',
    workers: Number(process.env.WORKERS),
    ...JSON.parse(process.env.OPTIONS),
  },
);
