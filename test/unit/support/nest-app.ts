import 'reflect-metadata';
import { type INestApplication, type INestApplicationContext, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { onTestFinished } from 'vitest';

export type Metadata = Parameters<typeof Module>[0];

/** An app that is initialised, and does not listen. */
export async function appOf(
  metadata: Metadata,
  prepare: (app: INestApplication) => void = () => {},
): Promise<INestApplication> {
  @Module(metadata)
  class AppModule {}
  const app = await NestFactory.create(AppModule, { logger: false, abortOnError: false });
  onTestFinished(() => app.close());
  prepare(app);
  return app.init();
}

/** An app without a server. */
export async function contextOf(metadata: Metadata): Promise<INestApplicationContext> {
  @Module(metadata)
  class AppModule {}
  const options = { logger: false, abortOnError: false } as const;
  const context = await NestFactory.createApplicationContext(AppModule, options);
  onTestFinished(() => context.close());
  return context;
}
