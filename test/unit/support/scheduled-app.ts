import { type DynamicModule, Module, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ScheduleModule } from '@nestjs/schedule';
import { onTestFinished } from 'vitest';
import { ClusterScheduleModule } from '../../../src/integrations/schedule/index.js';
import { ClusterTestingModule } from '../../../src/integrations/testing/index.js';

/** A whole second, so that no tick is due in between. */
export const NOW = Date.UTC(2030, 0, 1, 12, 0, 0);

/** An app with jobs, in a worker. */
export async function appOf(isLeader: boolean, provider: Type, ...more: (Type | DynamicModule)[]) {
  @Module({
    imports: [
      ClusterTestingModule.forRoot({ isLeader }),
      ScheduleModule.forRoot(),
      ClusterScheduleModule.forRoot(),
      ...more,
    ],
    providers: [provider],
  })
  class AppModule {}
  const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
  onTestFinished(() => app.close());
  return app;
}
