import type { Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express';
import compression from 'compression';
import { BODY_LIMIT_BYTES } from './body-limit.js';

export async function createExpressApp(module: Type): Promise<NestExpressApplication> {
  const app = await NestFactory.create<NestExpressApplication>(module, new ExpressAdapter());
  app.useBodyParser('json', { limit: BODY_LIMIT_BYTES });
  app.use(compression());
  return app;
}
