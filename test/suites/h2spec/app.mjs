// An app on Fastify with HTTP/2 in clear text. SUITE_PLAIN=1 starts it as plain Nest.
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { ClusterModule } from 'nestjs-cluster';
import { controller } from '../../fixtures/declare.mjs';

const isPlain = process.env.SUITE_PLAIN === '1';

async function createApp() {
  class AppModule {}
  Module({
    imports: isPlain ? [] : [ClusterModule.forRoot()],
    controllers: [controller({ 'GET ': () => 'Hello World!', 'POST ': () => 'Hello World!' })],
  })(AppModule);
  return NestFactory.create(AppModule, new FastifyAdapter({ http2: true }), { logger: ['error'] });
}

if (isPlain) {
  const app = await createApp();
  await app.listen(0, '127.0.0.1');
  console.log(app.getHttpServer().address().port);
} else {
  await ClusterModule.bootstrap(createApp, JSON.parse(process.env.TEST_OPTIONS));
}
