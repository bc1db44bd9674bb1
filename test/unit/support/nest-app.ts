import 'reflect-metadata';
import { type INestApplication, Module } from '@nestjs/common';
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
