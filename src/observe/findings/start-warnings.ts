import { silencedBy } from '../../contract/options/doctor-options.interface.js';
import type { FindingName } from '../../contract/options/index.js';
import { AppView } from './app-view.js';
import { type Check, findingsOf } from './check.js';
import { cache } from './checks/cache.js';
import { cpuBoundInline } from './checks/cpu-bound.js';
import { inProcessEvents } from './checks/in-process-events.js';
import { scheduledJobs } from './checks/scheduled-jobs.js';
import { socketIoAdapter, socketIoPolling } from './checks/socket-io.js';
import { throttler } from './checks/throttler.js';
import type { Finding, Situation } from './finding.js';

/** The checks that cost nothing. All but the first apply to any number of workers above one. */
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
  situation?: Pick<Situation, 'workers'>,
): string[] {
  const held = situation?.workers === 1 ? [cpuBoundInline] : CHEAP_CHECKS;
  const checks = held.filter(({ name }) => !ignore.includes(name));
  return findingsOf(checks, new AppView(app), situation).map(lineOf);
}

function lineOf({ name, where, problem, remedy, docs }: Finding): string {
  return `${problem}: ${where}; ${remedy} (${docs}); ${silencedBy(name)}`;
}
