import { silencedBy } from '../../contract/options/warning-options.interface.js';
import type { FindingName } from '../../contract/options/index.js';
import { AppView } from './app-view.js';
import { cache } from './checks/cache.js';
import { cpuBoundInline } from './checks/cpu-bound.js';
import { inProcessEvents } from './checks/in-process-events.js';
import { scheduledJobs } from './checks/scheduled-jobs.js';
import { schemaSynchronization } from './checks/schema-synchronization.js';
import { socketIoAdapter, socketIoPolling } from './checks/socket-io.js';
import { throttler } from './checks/throttler.js';
import { type Check, findingsOf } from './finding.js';

/** The checks that are cheap enough for every start. All but the first apply only to several workers. */
export const CHEAP_CHECKS: readonly Check[] = [
  cpuBoundInline,
  scheduledJobs,
  throttler,
  cache,
  socketIoAdapter,
  socketIoPolling,
  inProcessEvents,
  schemaSynchronization,
];

/** A line for each finding. Every worker of the app has the same findings. */
export function startWarnings(
  app: object,
  ignore: readonly FindingName[],
  workers: number,
): string[] {
  const checks = (workers > 1 ? CHEAP_CHECKS : [cpuBoundInline]).filter(
    ({ name }) => !ignore.includes(name),
  );
  return findingsOf(checks, new AppView(app), { workers, main: process.argv[1]! }).map(
    ({ name, where, problem, remedy }) => `${problem}: ${where}; ${remedy}; ${silencedBy(name)}`,
  );
}
