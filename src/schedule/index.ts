import { type DynamicModule, Module } from '@nestjs/common';
import { ScheduledJobs } from './scheduled-jobs.js';

export { EveryWorker } from './scheduled-jobs.js';

/**
 * A static module, so that Nest creates only one instance. A dynamic module would have an instance
 * for each call of `forRoot()`, and each instance would wrap the jobs again.
 */
@Module({ providers: [ScheduledJobs] })
class ScheduledJobsModule {}

/**
 * Runs the jobs of `@nestjs/schedule` in one worker of the cluster: methods with `@Cron()`,
 * `@Interval()` and `@Timeout()`, and cron jobs added to the `SchedulerRegistry`. All jobs stay
 * registered in every worker. Import this module once, next to `ScheduleModule.forRoot()`.
 */
@Module({ imports: [ScheduledJobsModule] })
export class ClusterScheduleModule {
  static forRoot(): DynamicModule {
    return { module: ClusterScheduleModule };
  }
}
