// One worker with trivial routes, on the event loop and in a thread. PORT, ADAPTER
import 'reflect-metadata';
import { bootstrap } from 'nestjs-cluster/bootstrap';

await bootstrap(
  async () => {
    const { Module } = await import('@nestjs/common');
    const { NestFactory } = await import('@nestjs/core');
    const { ClusterModule } = await import('nestjs-cluster');
    const { OffloadController } = await import('./offload.controller.mjs');
    class AppModule {}
    Module({ imports: [ClusterModule.forRoot()], controllers: [OffloadController] })(AppModule);
    const adapter =
      process.env.ADAPTER === 'fastify'
        ? [new (await import('@nestjs/platform-fastify')).FastifyAdapter()]
        : [];
    return NestFactory.create(AppModule, ...adapter, { logger: ['error', 'warn'] });
  },
  { port: Number(process.env.PORT), host: '127.0.0.1', workers: 1 },
);
