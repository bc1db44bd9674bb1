import { type AppView, classOf, type Member, metadataOf, methodsOf } from '../app-view.js';
import type { Check } from '../check.js';
import { listed, type Observation } from '../finding.js';

/** Set by `@Cron()`, `@Interval()` and `@Timeout()` of @nestjs/schedule, on the method. */
const JOB = 'SCHEDULER_TYPE';

/** What @nestjs/schedule keeps of the jobs that run. */
interface SchedulerRegistry {
  getCronJobs(): ReadonlyMap<string, unknown>;
  getIntervals(): readonly string[];
  getTimeouts(): readonly string[];
}

export const scheduledJobs: Check = {
  name: 'scheduled-jobs',
  level: 'problem',
  remedy:
    'run them where ClusterService.identity.slot is 0, or behind a lock in the database if they must never run twice',
  docs: 'docs/shared-state.md#slot-0',
  look(app) {
    const registry = app.providers.find(
      ({ instance }) => classOf(instance) === 'SchedulerRegistry',
    );
    // Its classes are looked through only if there is somebody to run what they have.
    return registry === undefined ? [] : observe(app, registry);
  },
};

function observe(app: AppView, registry: Member): Observation[] {
  const jobs = registry.instance as SchedulerRegistry;
  const running = [...jobs.getCronJobs().keys(), ...jobs.getIntervals(), ...jobs.getTimeouts()];
  const declared = [...app.providers, ...app.controllers].flatMap(jobsOf);
  if (declared.length === 0 && running.length === 0) return [];
  const where =
    declared.length === 0 ? app.describeModule(registry.module) : listed([...new Set(declared)]);
  return [{ where, problem: 'scheduled jobs run in every worker' }];
}

function jobsOf({ type, module }: Member): string[] {
  if (type === undefined) return [];
  return methodsOf(type)
    .filter(([, method]) => metadataOf(JOB, method) !== undefined)
    .map(([name]) => `${type.name}.${name}() (${module})`);
}
