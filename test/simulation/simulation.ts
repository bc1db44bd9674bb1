import fc from 'fast-check';
import { Broken } from './invariants/index.js';
import { isRoutine, live } from './life.js';
import { type Scenario, scenario } from './scenario.js';
import type { Effect } from '../../src/decide/effect.js';
import type { Observation } from './world.js';

/** The lives to play: one for each of `runs` seeds, beginning with `seed`. */
export interface Lives {
  readonly seed: number;
  readonly runs: number;
  /** The fast-check path of a failure that was found with that seed, in its shortest form. */
  readonly path?: string | undefined;
  /** Whether a failure is shrunk to its shortest form. Default: true. */
  readonly shrinks?: boolean;
  /** Whether the real supervisor runs around the core. Default: false. */
  readonly shell?: boolean | undefined;
}

export interface Outcome {
  readonly lives: number;
  readonly events: number;
  /** The number of events that are not routine, see `isRoutine`. */
  readonly eventful: number;
  readonly failure: Failure | undefined;
}

/** A life in which an invariant does not hold, shrunk as far as possible. */
export interface Failure {
  readonly seed: number;
  readonly path: string;
  readonly invariant: string;
  readonly message: string;
  readonly scenario: Scenario;
  readonly shell: boolean;
  /** A line for each event. */
  readonly diary: readonly string[];
}

/** Plays lives until one fails. */
export function simulate({ seed, runs, path, shrinks = true, shell = false }: Lives): Outcome {
  let events = 0;
  let eventful = 0;
  const property = fc.property(scenario, (each) => {
    const life = live(each, { shell });
    events += life.events;
    eventful += life.eventful;
  });
  for (let played = 0; played < runs; played += 1) {
    const result = fc.check(property, {
      seed: spread(seed + played),
      numRuns: 1,
      // By default the first run of a check draws smaller values. Here each check has only one run.
      unbiased: true,
      ...(path !== undefined && { path }),
      endOnFailure: path !== undefined || !shrinks,
    });
    if (result.failed) {
      const [shortest] = result.counterexample ?? [];
      if (shortest === undefined) throw result.errorInstance;
      const failure = tell(seed + played, result.counterexamplePath ?? '', shortest, shell);
      return { lives: played + 1, events, eventful, failure };
    }
  }
  return { lives: runs, events, eventful, failure: undefined };
}

/** The text to print for a failure. */
export function describeFailure({
  seed,
  path,
  message,
  diary,
  scenario: of,
  shell,
}: Failure): string {
  const shown = diary.length > MAX_LINES ? ['…', ...diary.slice(-MAX_LINES)] : diary;
  return [
    `does not hold: ${message}`,
    '',
    ...shown,
    '',
    `scenario: ${JSON.stringify(of)}`,
    `again: npm run simulate -- ${shell ? '--shell ' : ''}--seed ${seed} --path ${path}`,
  ].join('\n');
}

const MAX_LINES = 200;

function tell(seed: number, path: string, shortest: Scenario, shell: boolean): Failure {
  const diary: string[] = [];
  try {
    live(shortest, { watch: (step) => note(diary, step), shell });
  } catch (error) {
    const { message, stack } = error as Error;
    const isBroken = error instanceof Broken;
    return {
      seed,
      path,
      invariant: isBroken ? error.invariant : `the core throws nothing (${message})`,
      message: isBroken ? message : String(stack),
      scenario: shortest,
      shell,
      diary,
    };
  }
  throw new Error(`seed ${seed}: a life that failed does not fail again`);
}

/** Adds a line with the simulated time. Routine events without effects are left out. */
function note(diary: string[], step: Observation): void {
  const effects = step.effects.filter(isShown).map(inBrief);
  if (isRoutine(step) && effects.length === 0) return;
  const time = (step.world.clock.now / 1_000).toFixed(3).padStart(9);
  diary.push(`${time} s  ${[inBrief(step.event), ...effects].join(' -> ')}`);
}

/** Whether the diary shows the effect. Pings, leases and timers are left out: they are too many. */
function isShown(effect: Effect): boolean {
  if (effect.type === 'send') return !['ping', 'lead'].includes(effect.message.type);
  return !['arm', 'disarm', 'gone'].includes(effect.type);
}

function inBrief(of: object): string {
  const text = JSON.stringify(of, (_, value: unknown) =>
    value instanceof Error ? value.message : value,
  );
  return text.replaceAll('"', '').slice(1, -1).slice(0, MAX_WIDTH);
}

const MAX_WIDTH = 200;

/** Mixes the bits of a seed, so that neighbouring seeds draw unrelated lives. */
function spread(seed: number): number {
  let mixed = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}
