import { silencedBy } from '../../contract/options/doctor-options.interface.js';
import type { FindingName } from '../../contract/options/index.js';
import { AppView } from './app-view.js';
import { cache } from './checks/cache.js';
import { cpuBoundInline } from './checks/cpu-bound.js';
import { inProcessEvents } from './checks/in-process-events.js';
import { scheduledJobs } from './checks/scheduled-jobs.js';
import { socketIoAdapter, socketIoPolling } from './checks/socket-io.js';
import { throttler } from './checks/throttler.js';
import { type Check, findingsOf } from './finding.js';

/** The checks that cost nothing. All but the first need several workers. */
export const CHEAP_CHECKS: readonly Check[] = [
  cpuBoundInline,
  scheduledJobs,
  throttler,
  cache,
  socketIoAdapter,
  socketIoPolling,
  inProcessEvents,
];

/** A line for each finding, which are the same in every worker of the app. */
export function startWarnings(
  app: object,
  ignore: readonly FindingName[],
  workers: number,
): string[] {
  const checks = (workers > 1 ? CHEAP_CHECKS : [cpuBoundInline]).filter(
    ({ name }) => !ignore.includes(name),
  );
  return findingsOf(checks, new AppView(app), { workers, main: process.argv[1]! }).map(
    ({ name, where, problem, remedy, docs }) =>
      `${problem}: ${where}; ${remedy} (${docs}); ${silencedBy(name)}`,
  );
}
