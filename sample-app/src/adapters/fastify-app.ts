import compress from '@fastify/compress';
import type { Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { BODY_LIMIT_BYTES } from './body-limit.js';

export async function createFastifyApp(module: Type): Promise<NestFastifyApplication> {
  const app = await NestFactory.create<NestFastifyApplication>(
    module,
    new FastifyAdapter({ bodyLimit: BODY_LIMIT_BYTES }),
  );
  // Nest pins a Fastify of its own, so the plugin's types may come from another copy of it
  await app.register(compress as unknown as Parameters<typeof app.register>[0]);
  return app;
}
