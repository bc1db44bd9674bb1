import type { INestApplication, Type } from '@nestjs/common';
import { type AbstractHttpAdapter, NestFactory } from '@nestjs/core';
import compression from 'compression';
import { BODY_LIMIT_BYTES } from './body-limit.js';

/** Not in package.json: the registry of npm did not have it in November 2026. */
const PLATFORM: string = '@nestjs/platform-node';

interface PlatformNode {
  readonly NodeAdapter: new () => AbstractHttpAdapter;
}

interface NodeApplication extends INestApplication {
  useBodyParser(type: 'json', options: { readonly limit: number }): this;
}

export async function createNodeApp(module: Type): Promise<INestApplication> {
  const { NodeAdapter } = await loadPlatform();
  const app = await NestFactory.create<NodeApplication>(module, new NodeAdapter());
  app.useBodyParser('json', { limit: BODY_LIMIT_BYTES });
  app.use(compression());
  return app;
}

async function loadPlatform(): Promise<PlatformNode> {
  try {
    return (await import(PLATFORM)) as PlatformNode;
  } catch (cause) {
    throw new Error(
      `ADAPTER=node cannot load ${PLATFORM}; install that package, or set ADAPTER to express or fastify`,
      { cause },
    );
  }
}
