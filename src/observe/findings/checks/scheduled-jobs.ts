import { metadataOf } from '../../endpoints/controller-routes.js';
import { classOf, methodNamesOf } from '../app-view.js';
import { type Check, listed } from '../finding.js';

/** The metadata key that `@Cron()`, `@Interval()` and `@Timeout()` of @nestjs/schedule set on a method. */
const JOB = 'SCHEDULER_TYPE';

/** The module of this package that runs jobs in one worker. */
const GATE = 'ClusterScheduleModule';

/** The registry in which @nestjs/schedule keeps running jobs. */
interface SchedulerRegistry {
  getCronJobs(): ReadonlyMap<string, unknown>;
  getIntervals(): readonly string[];
  getTimeouts(): readonly string[];
}

export const scheduledJobs: Check = {
  name: 'scheduled-jobs',
  remedy:
    'import ClusterScheduleModule of nestjs-cluster/schedule too, which runs them in one worker',
  look(app, { workers }) {
    if (app.providers.some(({ module }) => module === GATE)) return [];
    const registry = app.providers.find(
      ({ instance }) => classOf(instance) === 'SchedulerRegistry',
    );
    // Declared jobs are looked for only if there is a registry to run them.
    if (registry === undefined) return [];
    const jobs = registry.instance as SchedulerRegistry;
    const running = [...jobs.getCronJobs().keys(), ...jobs.getIntervals(), ...jobs.getTimeouts()];
    const declared = [...app.providers, ...app.controllers].flatMap((member) =>
      methodNamesOf(member, (method) => metadataOf(JOB, method) !== undefined),
    );
    if (declared.length === 0 && running.length === 0) return [];
    const where =
      declared.length === 0 ? app.describeModule(registry.module) : listed([...new Set(declared)]);
    const times = workers > 1 ? `, so ${workers} times each` : '';
    return [{ where, problem: `scheduled jobs run in every worker${times}` }];
  },
};
