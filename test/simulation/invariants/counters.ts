import type { Observation } from '../world.js';
import { hold, type Invariant } from './invariant.js';

/** Counters only rise. */
export class Counters implements Invariant {
  after({ before, state }: Observation): void {
    const rises = (name: string, was: number, is: number): void =>
      hold('counters only rise', is >= was, () => ({ name, was, is }));
    rises('forks', before.forks, state.forks);
    rises('pings', before.pings, state.pings);
    rises('checks', before.checks, state.checks);
    rises('failures', before.failures, state.failures);
    rises('lastReload', before.lastReload, state.lastReload);
    rises('completed', before.reloads.completed, state.reloads.completed);
    rises('reverted', before.reloads.reverted, state.reloads.reverted);
    rises('aborted', before.reloads.aborted, state.reloads.aborted);
    rises('slots', before.slots.length, state.slots.length);
    hold('what has started has started', state.everReady || !before.everReady);
    if (before.slots === state.slots) return;
    for (const { index, restarts, untried } of before.slots) {
      const after = state.slots[index]!;
      hold('what was tried was tried', untried || !after.untried);
      if (restarts === after.restarts) continue;
      for (const [cause, count] of Object.entries(restarts)) {
        rises(`restarts ${cause}`, count, after.restarts[cause as keyof typeof restarts] ?? 0);
      }
    }
  }
}
