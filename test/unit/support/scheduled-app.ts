import type { DynamicModule, Type } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { ClusterScheduleModule } from '../../../src/schedule/index.js';
import { ClusterTestingModule } from '../../../src/testing/index.js';
import { MetricsEndpoint } from '../../../src/observe/metrics/metrics.endpoint.js';
import { contextOf } from './nest-app.js';

/** A whole second, so that no tick is due in between. */
export const NOW = Date.UTC(2030, 0, 1, 12, 0, 0);

/** A Prometheus client whose counter only notes the labels `job` and `outcome`. */
function countingClient(counted: string[]) {
  class Counter {
    inc({ job, outcome }: Record<'job' | 'outcome', string>, by = 1): void {
      if (by > 0) counted.push(`${job} ${outcome}`);
    }
  }
  return { Counter };
}

/** An app with jobs, in a worker. @returns it, and the runs that it has counted. */
export async function appOf(isLeader: boolean, provider: Type, ...more: (Type | DynamicModule)[]) {
  const counted: string[] = [];
  const client = countingClient(counted);
  const metrics = { extend: (contribute: (given: typeof client) => unknown) => contribute(client) };
  const app = await contextOf({
    imports: [
      ClusterTestingModule.forRoot({ isLeader }),
      ScheduleModule.forRoot(),
      ClusterScheduleModule.forRoot(),
      ...more,
    ],
    providers: [provider, { provide: MetricsEndpoint, useValue: metrics }],
  });
  return { app, counted };
}
