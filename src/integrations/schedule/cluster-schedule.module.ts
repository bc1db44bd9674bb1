import { type DynamicModule, Module } from '@nestjs/common';
import { ScheduledJobs } from './scheduled-jobs.js';

/** Nest alone makes one for each call of `forRoot()`, and each would gate the other's jobs. */
@Module({ providers: [ScheduledJobs] })
class ScheduledJobsModule {}

/**
 * Runs the jobs of `@Cron()`, `@Interval()` and `@Timeout()` of @nestjs/schedule in one worker of the
 * cluster, and cron jobs that are added to the `SchedulerRegistry`, too. All of them stay registered
 * in every worker. Import it once, next to `ScheduleModule.forRoot()`.
 */
@Module({ imports: [ScheduledJobsModule] })
export class ClusterScheduleModule {
  static forRoot(): DynamicModule {
    return { module: ClusterScheduleModule };
  }
}
