import type { WorkerId } from '../../../src/decide/cluster-state.js';
import type { Observation } from '../world.js';
import { hold, type Invariant } from './invariant.js';

/** Counters only rise, and the counters of a slot are sums over its workers. */
export class Counters implements Invariant {
  /** By slot, the aborted requests that it should have counted. */
  readonly #aborted = new Map<number, number>();
  /** The aborted requests that draining workers have reported. */
  readonly #reported = new Map<WorkerId, number>();

  after(step: Observation): void {
    const { before, state } = step;
    const rises = (name: string, was: number, is: number): void =>
      hold('counters only rise', is >= was, { name, was, is });
    rises('forks', before.forks, state.forks);
    rises('pings', before.pings, state.pings);
    rises('lastReload', before.lastReload, state.lastReload);
    rises('completed', before.reloads.completed, state.reloads.completed);
    rises('reverted', before.reloads.reverted, state.reloads.reverted);
    rises('aborted', before.reloads.aborted, state.reloads.aborted);
    rises('slots', before.slots.length, state.slots.length);
    hold('what has started has started', state.everReady || !before.everReady);
    this.#sum(step);
    if (before.slots === state.slots) return;
    for (const { index, restarts } of before.slots) {
      const after = state.slots[index]!;
      if (restarts === after.restarts) continue;
      for (const [cause, count] of Object.entries(restarts)) {
        rises(`restarts ${cause}`, count, after.restarts[cause as keyof typeof restarts] ?? 0);
      }
    }
    for (const { index, abortedRequests } of state.slots) {
      const aborted = this.#aborted.get(index) ?? 0;
      const isSum = abortedRequests === aborted;
      hold('what a slot has counted is the sum over its workers', isSum, {
        index,
        abortedRequests,
        aborted,
      });
    }
  }

  #sum({ before, event }: Observation): void {
    if (event.type !== 'worker') return;
    const worker = before.workers.get(event.worker);
    if (worker?.state !== 'draining') return;
    if (event.event.type === 'drained') {
      this.#reported.set(worker.id, event.event.report.abortedRequests);
    } else if (event.event.type === 'exited') {
      const aborted = this.#reported.get(worker.id) ?? 0;
      this.#aborted.set(worker.slot, (this.#aborted.get(worker.slot) ?? 0) + aborted);
    }
  }
}
