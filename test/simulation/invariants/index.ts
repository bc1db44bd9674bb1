import type { Observation } from '../world.js';
import { Answers } from './answers.js';
import { Candidates } from './candidates.js';
import { Capacity } from './capacity.js';
import { Counters } from './counters.js';
import type { Invariant } from './invariant.js';
import { Kills } from './kills.js';
import { Leading } from './leading.js';
import { Leaving } from './leaving.js';
import { Pings } from './pings.js';
import { Places } from './places.js';
import { Releases } from './releases.js';
import { Restarts } from './restarts.js';
import { Telling } from './telling.js';
import { Timers } from './timers.js';
import { Upkeep } from './upkeep.js';

export { Broken, hold, type Invariant } from './invariant.js';

/** New instances of all invariants, for one life of a cluster. */
export function invariants(): readonly Invariant[] {
  return [
    new Places(),
    new Timers(),
    new Telling(),
    new Capacity(),
    new Candidates(),
    new Kills(),
    new Leading(),
    new Leaving(),
    new Answers(),
    new Releases(),
    new Restarts(),
    new Upkeep(),
    new Pings(),
    new Counters(),
  ];
}

/** @throws Broken */
export function checkAtRest(
  all: readonly Invariant[],
  step: Pick<Observation, 'state' | 'world'>,
): void {
  for (const each of all) each.atRest?.(step);
}
