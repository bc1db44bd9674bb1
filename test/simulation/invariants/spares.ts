import type { ClusterState, Slot, Worker } from '../../../src/supervisor/decide/cluster-state.js';
import type { Observation } from '../world.js';
import { hold, type Invariant, servingSlots } from './invariant.js';

/**
 * A spare listens only once it takes the place of another worker, and it takes a free place at once.
 * Only a worker that was told to listen serves.
 */
export class Spares implements Invariant {
  readonly #granted = new Set<number>();

  after({ before, state, effects, event, world }: Observation): void {
    const { standby } = world.scenario;
    for (const effect of effects) {
      if (effect.type !== 'grant') continue;
      this.#granted.add(effect.worker);
      const worker = state.workers.get(effect.worker)!;
      const { role, release } = state.slots[worker.slot]!;
      hold('nobody listens in the slot of a spare', role !== 'standby', () => worker);
      if (before.workers.get(effect.worker)?.state !== 'standby') continue;
      const isSame = worker.generation === release.generation;
      const isProven = state.verification.proven.includes(worker.generation);
      hold('a spare that serves is of the release of its slot', isSame && isProven, () => worker);
    }
    const [serving, spares] = [servingSlots(state).length, sparesOf(state).length];
    const counts = serving === state.desired && spares === standby;
    hold('there are as many slots as wanted, and as many spares', counts, () => state.slots);
    if (before.workers === state.workers && before.slots === state.slots) return;
    const live = [...state.workers.values()].filter((each) => each.state !== 'draining');
    hold(
      'there are no more workers than wanted, the spares and one candidate',
      live.length <= state.desired + standby + 1,
      () => live,
    );
    for (const worker of live) {
      const isTold = worker.state !== 'ready' || this.#granted.has(worker.id);
      hold('who serves was told to listen', isTold, () => worker);
      const isSpare = state.slots[worker.slot]!.role === 'standby';
      const fits = isSpare ? worker.state !== 'ready' : worker.state !== 'standby';
      hold('a spare has the slot of a spare', fits, () => worker);
    }
    if (state.shutdown !== undefined || !state.everReady) return;
    for (const slot of servingSlots(state)) {
      if (isTaken(state, slot)) continue;
      const fit = sparesOf(state).find((each) => isFit(state, each, slot));
      hold('a spare takes a free place at once', fit === undefined, () => ({ slot, fit, event }));
    }
  }
}

function sparesOf({ slots }: ClusterState): readonly Slot[] {
  return slots.filter(({ role }) => role === 'standby');
}

function contendersOf({ workers, replacement }: ClusterState, slot: Slot): readonly Worker[] {
  const candidate =
    replacement?.slot === slot.index && replacement.phase !== 'handing-over'
      ? replacement.candidate
      : undefined;
  return [slot.worker, candidate].flatMap((id) => workers.get(id ?? 0) ?? []);
}

/** Whether a worker of the slot is ready, or was told to listen. */
function isTaken(state: ClusterState, slot: Slot): boolean {
  return contendersOf(state, slot).some(
    (each) => each.state === 'ready' || (each.state === 'starting' && each.mayListen),
  );
}

function isFit({ workers, verification }: ClusterState, spare: Slot, { release }: Slot): boolean {
  const worker = workers.get(spare.worker ?? 0);
  return (
    worker?.state === 'standby' &&
    worker.generation === release.generation &&
    verification.proven.includes(worker.generation) &&
    worker.block === undefined &&
    worker.trial === undefined &&
    worker.condemned === undefined
  );
}
