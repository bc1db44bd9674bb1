import { NotMeasuredError } from '../../contract/errors/index.js';
import { type Limits, nextSetting } from './ladder.js';
import { type Measurement, measurementOf, type Run, type Setting } from './run/measurement.js';
import { measureRun, type Started } from './run/measure-run.js';
import type { Plan } from './plan.js';
import { environmentOf, recommend } from './recommendation.js';
import { measurementTable } from './measurement-table.js';

export interface TuneOptions extends Plan {
  readonly limits: Limits;
  readonly rounds: number;
}

/** The functions that print its output. */
export interface Output {
  /** Results. */
  readonly print: (line: string) => void;
  /** Progress. */
  readonly tell: (line: string) => void;
}

/** Measures one setting after the other, says which is the best and why. */
export async function tune(
  { limits, rounds, ...plan }: TuneOptions,
  { print, tell }: Output,
  run: { started: Started; interrupted: AbortSignal },
): Promise<void> {
  const runs = new Map<Setting, Run[]>();
  const measure = async (setting: Setting, round: number): Promise<void> => {
    const figures = await measureRun(plan, setting, run);
    runs.set(setting, [...(runs.get(setting) ?? []), figures]);
    tell(
      `round ${round} of ${rounds}: ${describe(setting)}: ${figures.requestsPerSecond.toFixed(1)} requests/s, p99 ${figures.p99Ms.toFixed(1)} ms`,
    );
  };
  const measurements = (): Measurement[] =>
    [...runs].map(([setting, each]) => measurementOf(setting, each));

  // The first round finds the settings, the others measure them again in turn: what else the
  // machine does then hits all of them alike.
  for (;;) {
    const setting = nextSetting(measurements(), limits);
    if (setting === undefined) break;
    await measure(setting, 1);
  }
  for (let round = 2; round <= rounds; round += 1) {
    for (const setting of runs.keys()) await measure(setting, round);
  }
  for (const line of measurementTable(measurements())) print(line);

  const recommendation = recommend(measurements());
  if (recommendation === undefined) {
    throw new NotMeasuredError(
      `requests failed with every number of workers; give fewer --connections than ${plan.connections}, or see the app's log`,
    );
  }
  print('');
  for (const caveat of recommendation.caveats) print(`note: ${caveat}`);
  print(recommendation.reason);
  print(
    Object.entries(environmentOf(recommendation.setting))
      .map(([name, value]) => `${name}=${value}`)
      .join(' '),
  );
}

function describe(setting: Setting): string {
  return Object.entries(environmentOf(setting))
    .map(([name, value]) => `${name}=${value}`)
    .join(' ');
}
