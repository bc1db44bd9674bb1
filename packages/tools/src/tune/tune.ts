import type { Interruption } from '../app/interruption.js';
import { type Column, figure, formatTable, oneLine, printLines, ToolError } from '../output.js';
import { type Limits, nextSetting } from './ladder.js';
import { measureRun } from './measure-run.js';
import {
  type Measurement,
  measurementOf,
  type Plan,
  type Run,
  type Setting,
} from './measurement.js';
import { environmentOf, recommend } from './recommendation.js';

const COLUMNS: readonly Column<Measurement>[] = [
  { title: 'workers', value: ({ setting }) => String(setting.workers) },
  { title: 'threads each', value: ({ threads }) => figure(threads) },
  { title: 'requests/s', value: ({ requestsPerSecond }) => requestsPerSecond.toFixed(1) },
  { title: 'p50 ms', value: ({ p50Ms }) => p50Ms.toFixed(1) },
  { title: 'p99 ms', value: ({ p99Ms }) => p99Ms.toFixed(1) },
  { title: 'failed', value: ({ failed }) => String(failed) },
  { title: 'CPU cores', value: ({ busyCores }) => figure(busyCores, 2) },
  { title: 'event loop', value: ({ eventLoopUtilization }) => figure(eventLoopUtilization, 2) },
  { title: 'memory MB', value: ({ memoryBytes }) => figure(memoryBytes / 1e6) },
];

export interface TuneOptions extends Plan {
  readonly limits: Limits;
  readonly rounds: number;
}

/** Measures one setting after the other, and prints the best one with the reason. */
export async function tune(
  { limits, rounds, ...plan }: TuneOptions,
  interruption: Interruption,
): Promise<void> {
  const runs = new Map<Setting, Run[]>();
  const measure = async (setting: Setting, round: number): Promise<void> => {
    const run = await measureRun(plan, setting, interruption);
    runs.set(setting, [...(runs.get(setting) ?? []), run]);
    const figures = `${run.requestsPerSecond.toFixed(1)} requests/s, p99 ${run.p99Ms.toFixed(1)} ms`;
    process.stderr.write(
      `${oneLine(`round ${round} of ${rounds}: ${inEnvironment(setting)}: ${figures}`)}\n`,
    );
  };
  const measurements = (): Measurement[] =>
    [...runs].map(([setting, each]) => measurementOf(setting, each));

  // The first round finds the settings. Each further round measures all settings again in turn, so
  // that other load on the machine affects all settings alike.
  for (;;) {
    const setting = nextSetting(measurements(), limits);
    if (setting === undefined) break;
    await measure(setting, 1);
  }
  for (let round = 2; round <= rounds; round += 1) {
    for (const setting of runs.keys()) await measure(setting, round);
  }
  printLines(formatTable(COLUMNS, measurements()));

  const recommendation = recommend(measurements());
  if (recommendation === undefined) {
    throw new ToolError(
      `requests failed with every number of workers; give fewer --connections than ${plan.connections}, or see the app's log`,
    );
  }
  const { caveats, reason, setting } = recommendation;
  printLines(['', ...caveats.map((each) => `note: ${each}`), reason, inEnvironment(setting)]);
}

function inEnvironment(setting: Setting): string {
  return Object.entries(environmentOf(setting))
    .map(([name, value]) => `${name}=${value}`)
    .join(' ');
}
