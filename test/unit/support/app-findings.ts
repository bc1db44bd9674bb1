import 'reflect-metadata';
import { type INestApplication, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { onTestFinished } from 'vitest';

/** An app that is initialized, and does not listen. */
export async function appOf(
  metadata: Parameters<typeof Module>[0],
  prepare: (app: INestApplication) => void = () => {},
): Promise<INestApplication> {
  @Module(metadata)
  class AppModule {}
  const app = await NestFactory.create(AppModule, { logger: false, abortOnError: false });
  onTestFinished(() => app.close());
  prepare(app);
  return app.init();
}
