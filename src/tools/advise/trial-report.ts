import { type Column, formatNumber, formatTable } from '../control/view/table.js';
import type { Side, Trial } from './trial.js';

type Measure = readonly [title: string, value: (side: Side) => string];

const MEASURES: readonly Measure[] = [
  ['event loop busy, %', ({ busy }) => formatNumber(busy * 100, 1)],
  ['p99 of the wait for the event loop, ms', ({ waitP99Ms }) => formatNumber(waitP99Ms, 1)],
  ['p99 of its own requests, ms', ({ ownP99Ms }) => formatNumber(ownP99Ms, 1)],
  ['requests a second', ({ requestsPerSecond }) => formatNumber(requestsPerSecond, 1)],
  ['answered with 5xx, %', ({ errors }) => formatNumber(errors * 100, 2)],
];

/** The trial as lines for a terminal. */
export function trialLines(trial: Trial): readonly string[] {
  const { method, slot, seconds, without } = trial;
  const columns: readonly Column<Measure>[] = [
    { title: '', value: ([title]) => title, left: true },
    { title: 'other workers', value: ([, value]) => value(without) },
    { title: `worker=${slot}`, value: ([, value]) => value(trial.with) },
  ];
  return [
    `worker=${slot} ran ${method} in a thread for ${seconds} s, and the other workers (${without.workers}) on their event loops.`,
    '',
    ...formatTable(columns, MEASURES),
    '',
    `${verdictOf(trial)} worker=${slot} has been replaced, and runs ${method} on its event loop again.`,
  ];
}

/** Smaller differences, as shares, say nothing. */
const LEAST_GAIN = 0.1;
const LEAST_ERRORS = 0.01;

function verdictOf({ method, without, ...trial }: Trial): string {
  if (without.requestsPerSecond === 0 || trial.with.requestsPerSecond === 0) {
    return 'Nothing is proven: no requests came. Ask again while the cluster has its usual load.';
  }
  if (trial.with.errors > without.errors + LEAST_ERRORS) {
    return `With ${method} in a thread, more requests failed: see the log of worker=${trial.slot}.`;
  }
  return trial.with.waitP99Ms < without.waitP99Ms * (1 - LEAST_GAIN)
    ? `@CpuBound() on ${method} helps the other requests.`
    : `@CpuBound() on ${method} would gain nothing for the other requests.`;
}
