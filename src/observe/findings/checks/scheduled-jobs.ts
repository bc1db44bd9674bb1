import { type AppView, at, classOf, type Member, metadataOf, methodsOf } from '../app-view.js';
import type { Check } from '../check.js';
import { listed, type Observation } from '../finding.js';

/** Set by `@Cron()`, `@Interval()` and `@Timeout()` of @nestjs/schedule, on the method. */
const JOB = 'SCHEDULER_TYPE';

/** With it they run in one worker. */
const GATE = 'ClusterScheduleModule';

/** The registry in which @nestjs/schedule keeps running jobs. */
interface SchedulerRegistry {
  getCronJobs(): ReadonlyMap<string, unknown>;
  getIntervals(): readonly string[];
  getTimeouts(): readonly string[];
}

export const scheduledJobs: Check = {
  name: 'scheduled-jobs',
  level: 'problem',
  remedy: 'import ClusterScheduleModule of nestjs-cluster/schedule, which runs them in one worker',
  docs: 'docs/scheduled-jobs.md',
  look(app, situation) {
    if (app.providers.some(({ module }) => module === GATE)) return [];
    const registry = app.providers.find(
      ({ instance }) => classOf(instance) === 'SchedulerRegistry',
    );
    // Its classes are looked through only if there is somebody to run what they have.
    return registry === undefined ? [] : observe(app, registry, situation);
  },
};

function observe(app: AppView, registry: Member, situation: unknown): Observation[] {
  const jobs = registry.instance as SchedulerRegistry;
  const running = [...jobs.getCronJobs().keys(), ...jobs.getIntervals(), ...jobs.getTimeouts()];
  const declared = [...app.providers, ...app.controllers].flatMap(jobsOf);
  if (declared.length === 0 && running.length === 0) return [];
  const where =
    declared.length === 0 ? app.describeModule(registry.module) : listed([...new Set(declared)]);
  const workers = at(situation, 'workers');
  const times = typeof workers === 'number' && workers > 1 ? `, so ${workers} times each` : '';
  return [{ where, problem: `scheduled jobs run in every worker${times}` }];
}

function jobsOf({ type, module }: Member): string[] {
  if (type === undefined) return [];
  return methodsOf(type)
    .filter(([, method]) => metadataOf(JOB, method) !== undefined)
    .map(([name]) => `${type.name}.${name}() (${module})`);
}
