import { EXIT_TIMEOUT_MS } from '../../src/decide/step.js';
import { Clock, inWorldTime } from './clock.js';
import { CorePrimary } from './core-primary.js';
import { Broken, checkAtRest, type Invariant, invariants } from './invariants/index.js';
import type { Scenario } from './scenario.js';
import { ShellPrimary } from './shell-primary.js';
import { type Observation, World } from './world.js';

/** How long faults happen. */
const FAULTS_MS = 45_000;

/** How long the cluster may take to recover from the faults. */
const RECOVERS_WITHIN_MS = 60_000;

/** How long to wait for the end of a shutdown. Every shutdown is shorter. */
const ENDS_WITHIN_MS = 40_000;

/** How often to check whether the cluster has recovered. */
const LOOK_EVERY_MS = 500;

/** How long the cluster runs at rest, so that late messages and timers come too. */
const REST_MS = 2_000;

/** A life has some hundred events. If it has more than this, the core is in an endless loop. */
const MAX_EVENTS = 30_000;

/** How a life is played. */
export interface Manner {
  readonly watch?: ((step: Observation) => void) | undefined;
  /** Whether the real supervisor runs around the core. Default: only the core runs. */
  readonly shell?: boolean | undefined;
}

/** The numbers of events in a life. */
export interface Life {
  readonly events: number;
  /** The events that are not routine, see `isRoutine`. */
  readonly eventful: number;
}

/**
 * Plays one life of a cluster and checks all invariants after each step.
 *
 * @throws Broken, or any error of the core.
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
        // The supervisor reads Node's arguments to know whether it may be debugged.
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
  // Workers that were forked before may hang in their drain. They may leave one after the other.
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

/**
 * Whether an event is a heartbeat, the renewal of a lease, an answer to either or a memory check.
 */
export function isRoutine({ event }: Pick<Observation, 'event'>): boolean {
  if (event.type === 'worker') return ['pong', 'leads'].includes(event.event.type);
  if (event.type === 'due') return event.timer.type === 'lease-due';
  return ['heartbeat-due', 'upkeep-due'].includes(event.type);
}
