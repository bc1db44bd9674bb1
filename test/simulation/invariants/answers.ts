import type { RestartResult } from '../../../src/contract/snapshot/types.js';
import {
  type ClusterState,
  replacementsOf,
  type Requester,
  type Slot,
  type WorkerId,
} from '../../../src/decide/cluster-state.js';
import { nameOf, type Observation } from '../world.js';
import { hold, type Invariant } from './invariant.js';
import { candidaciesOf, emitted } from './telling.js';

/** Each request is answered once, and the answer is true at that time. */
export class Answers implements Invariant {
  #reloadsBegun = 0;
  #reloadsEnded = 0;
  /** By requester, the worker that was in the slot when its restart was requested. */
  readonly #toRestart = new Map<string, WorkerId | undefined>();

  after(step: Observation): void {
    const { effects, state, world, event, before } = step;
    if (event.type === 'restart') {
      const isOwn = event.requester.by === 'caller' || event.requester.slot === event.slot;
      hold('a worker that asks for its restart is restarted itself', isOwn, event);
      // If the slot is already being restarted, this request joins that restart.
      const first = before.pendingRequests.find(({ slot }) => slot === event.slot);
      const { slot } = event;
      const { worker, replacement } = before.slots[slot] ?? {};
      const isLeaving = replacement?.phase === 'handing-over' && replacement.cause === 'restart';
      const leaves = isLeaving ? replacement.predecessor : worker;
      const old = first === undefined ? leaves : this.#toRestart.get(nameOf(first.requester));
      this.#toRestart.set(nameOf(event.requester), old);
    }
    for (const effect of effects) {
      if (effect.type !== 'answer') continue;
      const { requester, answer } = effect;
      const times = world.answered.get(nameOf(requester));
      hold('a request is answered once', times === 1, effect);
      if (answer.type === 'scaled' && state.shutdown === undefined) {
        this.#scaled(step, requester.by === 'worker');
      }
      if (answer.type === 'restarted') this.#restarted(step, requester, answer.result);
      if (answer.type !== 'reloaded' || state.shutdown !== undefined) continue;
      const { outcome, generation } = answer.result;
      const asked = before.reload?.generation ?? state.lastReload;
      hold('an answer is of the reload that was asked for', generation === asked, effect);
      const isLastSlot = outcome === 'completed' || before.reload?.outcome !== 'completed';
      const early = requester.by === 'worker' && isLastSlot;
      hold('a reload is over when a caller is told', early || state.reload === undefined, effect);
      if (outcome === 'completed') isReplaced(state, generation);
    }
    this.#reloads(step);
    if (state.shutdown === undefined) waitForSomething(state);
    const { pendingRequests } = state;
    const replacements = replacementsOf(state);
    const awaited = replacements.flatMap((each) =>
      each.phase === 'handing-over' ? each.predecessor : [],
    );
    hold(
      'nobody waits for a worker that waits for a reload or a restart',
      !pendingRequests.some(
        (each) =>
          each.for !== 'scale' &&
          each.requester.by === 'worker' &&
          awaited.includes(each.requester.worker),
      ),
      replacements,
    );
  }

  atRest({ state, world }: Pick<Observation, 'state' | 'world'>): void {
    for (const requester of world.asked) {
      hold('every requester is answered', world.answered.get(requester) === 1, requester);
    }
    if (state.shutdown !== undefined) return;
    hold('a reload ends', state.reload === undefined && this.#reloadsBegun === this.#reloadsEnded);
  }

  #scaled({ state }: Observation, byWorker: boolean): void {
    const comingUp = slotsComingUp(state);
    const all = comingUp.length === 0;
    hold('who scaled is told once the new workers are ready', all, comingUp);
    const surplus = surplusOf(state);
    hold('who scaled is told once the others are gone', byWorker || surplus.length === 0, surplus);
  }

  /**
   * A restart is answered at its end. A worker that restarts itself is answered before it drains.
   */
  #restarted(
    { state, before, event }: Observation,
    requester: Requester,
    result: RestartResult,
  ): void {
    const { slot, outcome, reason } = result;
    const seen = { requester, result, slot: state.slots[slot] };
    hold('a restart says why it was aborted', (outcome === 'aborted') === (reason !== null), seen);
    if (outcome === 'aborted') return;
    const old = this.#toRestart.get(nameOf(requester));
    hold(
      'a restarted worker serves no more',
      old !== state.slots[slot]!.worker || old === undefined,
      seen,
    );
    const requesters = before.pendingRequests
      .filter((each) => each.for !== 'scale')
      .map((each) => each.requester);
    if (event.type === 'restart' || event.type === 'reload') requesters.push(event.requester);
    const early = requesters.some((each) => each.by === 'worker' && each.slot === slot);
    const worker = old === undefined ? undefined : state.workers.get(old);
    // The old worker may drain for another cause, if its slot was removed by a scale-down and came back.
    const left = worker?.state !== 'draining' || worker.retirement?.cause !== 'restart';
    hold('a restart is over when a caller is told', left || early, seen);
  }

  #reloads({ effects, before, state }: Observation): void {
    this.#reloadsBegun += emitted(effects, 'reload-started').length;
    // The core reverts a release that fails while it is observed, without a request.
    if (before.reload === undefined && state.reload?.outcome === 'reverted')
      this.#reloadsBegun += 1;
    for (const effect of effects) {
      if (effect.type !== 'emit' || effect.name !== 'reload-ended') continue;
      this.#reloadsEnded += 1;
      const { outcome } = effect.event;
      hold('the end of a reload is counted', state.reloads[outcome] > before.reloads[outcome]);
      if (outcome === 'completed' && state.shutdown === undefined) {
        isReplaced(state, effect.event.generation);
        const kept = state.release.generation === effect.event.generation;
        hold('new slots run what was reloaded', kept, state.release);
      }
    }
    const underWay = this.#reloadsBegun - this.#reloadsEnded;
    hold('one reload at a time', underWay === (state.reload === undefined ? 0 : 1), underWay);
  }
}

/** Checks that nothing is pending that should have been answered in this step. */
function waitForSomething(state: ClusterState): void {
  const { pendingRequests, replacementsWaiting } = state;
  const scaleRequests = pendingRequests.filter((each) => each.for === 'scale');
  if (scaleRequests.length > 0) {
    const [comesUp, goes] = [slotsComingUp(state).length > 0, surplusOf(state).length > 0];
    const waits = scaleRequests.every(
      ({ requester: { by } }) => comesUp || (goes && by === 'caller'),
    );
    hold('who scaled waits for something', waits, scaleRequests);
  }
  const asksReload = pendingRequests.some((each) => each.for === 'reload');
  hold('who reloads waits for a reload', !asksReload || state.reload !== undefined);
  for (const request of pendingRequests) {
    if (request.for !== 'restart') continue;
    const waits = [...replacementsOf(state), ...replacementsWaiting].some(
      (each) => each.cause === 'restart' && each.slot === request.slot,
    );
    hold('who restarts a worker waits for its replacement', waits, request);
  }
}

/** The wanted slots that have a starting worker and not a ready one. */
function slotsComingUp(state: ClusterState): readonly number[] {
  const { workers, slots, desired } = state;
  const comesUp = ({ index, worker: own }: Slot): boolean => {
    const candidate = candidaciesOf(state).find(({ slot }) => slot === index)?.candidate;
    const states = [own, candidate].map((id) => id !== undefined && workers.get(id)?.state);
    return states.includes('starting') && !states.includes('ready');
  };
  return slots
    .slice(0, desired)
    .filter(comesUp)
    .map(({ index }) => index);
}

function surplusOf({ workers, desired }: ClusterState) {
  return [...workers.values()].filter(({ slot }) => slot >= desired);
}

function isReplaced({ slots, desired }: ClusterState, generation: number): void {
  for (const { index, release } of slots.slice(0, desired)) {
    const isNew = release.generation === generation;
    hold('a completed reload has replaced everybody', isNew, { index, release, generation });
  }
}
