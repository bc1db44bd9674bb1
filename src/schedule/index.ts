import { type DynamicModule, Module } from '@nestjs/common';
import { ScheduledJobs } from './scheduled-jobs.js';

export { EveryWorker } from './scheduled-jobs.js';

/**
 * A static module, so that Nest creates only one instance. With a dynamic module, each call of
 * `forRoot()` would create an instance, and each instance would wrap the jobs again.
 */
@Module({ providers: [ScheduledJobs] })
class ScheduledJobsModule {}

/**
 * Runs each `@nestjs/schedule` job in only one worker. These jobs are methods with `@Cron()`,
 * `@Interval()` or `@Timeout()`, and cron jobs added to the `SchedulerRegistry`. Jobs stay
 * registered in every worker. Import this module once, next to `ScheduleModule.forRoot()`.
 */
@Module({ imports: [ScheduledJobsModule] })
export class ClusterScheduleModule {
  static forRoot(): DynamicModule {
    return { module: ClusterScheduleModule };
  }
}
