import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ClusterModule } from 'nestjs-cluster';
import { setTimeout as delay } from 'node:timers/promises';
import { cacheOperations } from './cache.mjs';
import { eventOperations } from './events.mjs';
import { lockOperations } from './locks.mjs';
import { openIo } from './io.mjs';
import { runOperation } from './run-operation.mjs';
import { throttledRoutes } from './throttled.controller.mjs';

const ENTRIES = ['throttler', 'cache', 'lock', 'events', 'socket.io', 'schedule'];

/** An app that has only what PARTS names: nothing else may cost anything. */
export async function createSharedApp() {
  const parts = new Set(process.env.PARTS?.split(',').filter(Boolean));
  if (process.env.IMPORTED) {
    for (const entry of ENTRIES) await import(`nestjs-cluster/${entry}`);
  }
  const controllers = parts.has('throttler') ? [await throttledRoutes()] : [];
  class SharedModule {}
  Module({ imports: [ClusterModule.forRoot()], controllers })(SharedModule);
  const app = await create(SharedModule);
  const operations = new Map([['nothing', () => delay(1)]]);
  const add = (more) => {
    for (const [name, run] of Object.entries(more)) operations.set(name, run);
  };
  if (parts.has('cache')) add(await cacheOperations());
  if (parts.has('lock')) add(await lockOperations());
  if (parts.has('events')) add(await eventOperations());
  if (parts.has('socket.io')) add(await openIo(app));
  // Without a controller: what runs is asked for once a window, by the driver.
  app.getHttpAdapter().get('/run', (request, response) => {
    void runOperation(operations, request.query).then((result) => response.send(result));
  });
  return app;
}

async function create(module) {
  const options = { logger: ['error', 'warn'] };
  if (process.env.ADAPTER !== 'fastify') return NestFactory.create(module, options);
  const { FastifyAdapter } = await import('@nestjs/platform-fastify');
  return NestFactory.create(module, new FastifyAdapter(), options);
}
