import { EXIT_TIMEOUT_MS } from '../../src/supervisor/decide/step.js';
import { Clock } from './clock.js';
import { CorePrimary } from './core-primary.js';
import { Broken, checkAtRest, type Invariant, invariants } from './invariants/index.js';
import type { Scenario } from './scenario.js';
import { ShellPrimary } from './shell-primary.js';
import { type Observation, World } from './world.js';
import { inWorldTime } from './world-time.js';

/** How long things happen, and how long the cluster has to get over them. */
const FAULTS_MS = 45_000;
const RECOVERS_WITHIN_MS = 60_000;

/** Longer than any shutdown takes. */
const ENDS_WITHIN_MS = 40_000;

/** How often it is looked whether the cluster has got over it. */
const LOOK_EVERY_MS = 500;

/** Time for what comes too late to come all the same. */
const REST_MS = 2_000;

/** A life has some hundred events. With more it goes in circles. */
const MAX_EVENTS = 30_000;

/** How a life is played. */
export interface Manner {
  readonly watch?: ((step: Observation) => void) | undefined;
  /** With the real supervisor around the core. */
  readonly shell?: boolean | undefined;
}

/** How many events a life had. */
export interface Life {
  readonly events: number;
  /** Those that are no routine: neither heartbeats nor their answers, nor a look at what workers need. */
  readonly eventful: number;
}

/**
 * Plays one life of a cluster and checks after each step that everything holds.
 *
 * @throws Broken, or whatever the core throws.
 */
export function live(scenario: Scenario, { watch, shell = false }: Manner = {}): Life {
  const all = invariants();
  let routine = 0;
  const observe = (step: Observation): void => {
    watch?.(step);
    if (isRoutine(step)) routine += 1;
    for (const each of all) each.after(step);
    if (step.world.events > MAX_EVENTS) {
      throw new Broken('a life comes to an end', step.world.events);
    }
  };
  const clock = new Clock();
  const events = shell
    ? inWorldTime(clock, scenario.seed, () => {
        // It knows by Node's arguments whether it may be debugged.
        const undebugged = { ...scenario, inspected: false };
        return play(new World(undebugged, observe, (world) => new ShellPrimary(world), clock), all);
      })
    : play(new World(scenario, observe, (world) => new CorePrimary(world)), all);
  return { events, eventful: events - routine };
}

/** @returns how many events there were. */
function play(world: World, all: readonly Invariant[]): number {
  world.begin();
  world.run(FAULTS_MS);
  world.heal();
  recover(world);
  checkAtRest(all, { state: world.state, world });
  if (world.ended === undefined) {
    const { completed } = world.state.reloads;
    world.askForReload(undefined);
    recover(world);
    checkAtRest(all, { state: world.state, world });
    if (world.state.reloads.completed !== completed + 1) {
      throw new Broken('once faults stop, a reload completes', world.state.reloads);
    }
    world.run(REST_MS);
    world.stop(undefined);
    world.run(ENDS_WITHIN_MS);
    checkAtRest(all, { state: world.state, world });
  }
  return world.events;
}

function recover(world: World): void {
  // What was forked before may hang in its drain: then one leaves after the other.
  const { lameDuckMs, drainTimeoutMs, killTimeoutMs } = world.settings.options.shutdown;
  const leavesMs = lameDuckMs + drainTimeoutMs + killTimeoutMs + EXIT_TIMEOUT_MS;
  const withinMs = RECOVERS_WITHIN_MS + world.state.workers.size * leavesMs;
  for (let ms = 0; ms < withinMs && !world.atRest; ms += LOOK_EVERY_MS) {
    world.run(LOOK_EVERY_MS);
  }
  if (world.atRest) return;
  throw new Broken(
    'once faults stop, a slot that is wanted has a ready worker in time',
    world.state,
  );
}

/** A round of heartbeats or of a lease, an answer to it, or a look at memory: there are as many as the clock makes. */
export function isRoutine({ event }: Pick<Observation, 'event'>): boolean {
  if (event.type === 'worker') return ['pong', 'leads'].includes(event.event.type);
  if (event.type === 'due') return event.timer.type === 'lease-due';
  return event.type === 'heartbeat-due' || event.type === 'upkeep-due';
}
