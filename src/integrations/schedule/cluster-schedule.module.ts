import { type DynamicModule, Module } from '@nestjs/common';
import { ScheduledJobs } from './scheduled-jobs.js';

/**
 * A static module: Nest makes one instance of it. A dynamic one would have an instance for each call
 * of `forRoot()`, and each would gate the other's jobs.
 */
@Module({ providers: [ScheduledJobs] })
class ScheduledJobsModule {}

/**
 * Runs the jobs of `@Cron()`, `@Interval()` and `@Timeout()` of `@nestjs/schedule`, and cron jobs added
 * to the `SchedulerRegistry`, in one worker of the cluster. They stay registered in every worker.
 * Import it once, next to `ScheduleModule.forRoot()`.
 */
@Module({ imports: [ScheduledJobsModule] })
export class ClusterScheduleModule {
  static forRoot(): DynamicModule {
    return { module: ClusterScheduleModule };
  }
}
