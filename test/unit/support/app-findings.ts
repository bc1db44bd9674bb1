import 'reflect-metadata';
import { type INestApplication, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { FastifyAdapter } from '@nestjs/platform-fastify';
import { onTestFinished } from 'vitest';
import { AppView } from '../../../src/observe/findings/app-view.js';
import { type Check, findingsOf, type Situation } from '../../../src/observe/findings/finding.js';

export const SITUATION: Situation = { workers: 4, main: 'dist/main.js' };

export type Metadata = Parameters<typeof Module>[0];

/** An app that is up, and listens to nobody. */
export async function appOf(
  metadata: Metadata,
  adapter?: FastifyAdapter,
  prepare: (app: INestApplication) => void = () => {},
): Promise<INestApplication> {
  @Module(metadata)
  class AppModule {}
  const options = { logger: false, abortOnError: false } as const;
  const app: INestApplication = await (adapter === undefined
    ? NestFactory.create(AppModule, options)
    : NestFactory.create(AppModule, adapter, options));
  onTestFinished(() => app.close());
  prepare(app);
  return app.init();
}

/** The findings of a check, one line each. */
export function look(check: Check, app: object, situation: Situation): string[] {
  return findingsOf([check], new AppView(app), situation).map(
    ({ where, problem }) => `${where}: ${problem}`,
  );
}
