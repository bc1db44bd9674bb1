// The app of the tests of @nest-lab/throttler-storage-redis, in the workers of a cluster.
import 'reflect-metadata';
import { createRequire } from 'node:module';
import { Module } from '@nestjs/common';
import { APP_GUARD, NestFactory } from '@nestjs/core';
import { ThrottlerGuard } from '@nestjs/throttler';
import { ClusterModule } from 'nestjs-cluster';

const { ControllerModule } = createRequire(import.meta.url)(
  `${process.env.SUITE}/test/app/controllers/controller.module.js`,
);

async function createApp() {
  class AppModule {}
  Module({
    imports: [ControllerModule, ClusterModule.forRoot()],
    providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
  })(AppModule);
  const name = process.env.SUITE_ADAPTER;
  const adapters = await import(
    name === 'FastifyAdapter' ? '@nestjs/platform-fastify' : '@nestjs/platform-express'
  );
  return NestFactory.create(AppModule, new adapters[name](), { logger: ['error'] });
}

await ClusterModule.bootstrap(createApp, JSON.parse(process.env.TEST_OPTIONS));
