import { type DynamicModule, Module } from '@nestjs/common';
import { ScheduledJobs } from './scheduled-jobs.js';

/** Of itself Nest makes one for each call of `forRoot()`, and each would gate what the other has. */
@Module({ providers: [ScheduledJobs] })
class ScheduledJobsModule {}

/**
 * Has what `@Cron()`, `@Interval()` and `@Timeout()` of @nestjs/schedule declare run in one worker
 * of the cluster, and cron jobs that are added to the `SchedulerRegistry` as well. All of it stays
 * registered in every worker. Import it once, beside `ScheduleModule.forRoot()`.
 */
@Module({ imports: [ScheduledJobsModule] })
export class ClusterScheduleModule {
  static forRoot(): DynamicModule {
    return { module: ClusterScheduleModule };
  }
}
