// Routes whose work is done on the event loop, in a thread here, and by a consumer of a queue.
// PORT, HOST, REDIS (port), REDIS_HOST, BURN_LOOPS, CLUSTER_CONSUME
import 'reflect-metadata';
import { bootstrap } from 'nestjs-cluster/bootstrap';

await bootstrap(
  async () => {
    const { Module } = await import('@nestjs/common');
    const { NestFactory } = await import('@nestjs/core');
    const { ClusterModule } = await import('nestjs-cluster');
    const { ClusterQueueModule } = await import('nestjs-cluster/bullmq');
    const { QueuesController } = await import('./queues.controller.mjs');
    class AppModule {}
    Module({
      imports: [
        ClusterModule.forRoot(),
        ClusterQueueModule.forRoot({
          connection: {
            host: process.env.REDIS_HOST ?? '127.0.0.1',
            port: Number(process.env.REDIS),
          },
        }),
      ],
      controllers: [QueuesController],
    })(AppModule);
    return NestFactory.create(AppModule, { logger: ['error', 'warn'] });
  },
  {
    port: Number(process.env.PORT),
    host: process.env.HOST ?? '127.0.0.1',
    workers: 1,
    control: false,
  },
);
