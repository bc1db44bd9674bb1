import { clean, NotMeasuredError } from '../../contract/errors/index.js';
import type { Interruption } from '../app/interruption.js';
import { printLines } from '../control/view/output.js';
import { type Limits, nextSetting } from './ladder.js';
import {
  type Measurement,
  measurementOf,
  type Plan,
  type Run,
  type Setting,
} from './run/measurement.js';
import { measureRun } from './run/measure-run.js';
import { environmentOf, recommend } from './recommendation.js';
import { measurementTable } from './measurement-table.js';

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
      `${clean(`round ${round} of ${rounds}: ${inEnvironment(setting)}: ${figures}`)}\n`,
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
  printLines(measurementTable(measurements()));

  const recommendation = recommend(measurements());
  if (recommendation === undefined) {
    throw new NotMeasuredError(
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
