import type { ClusterState, Slot } from '../../../src/supervisor/decide/cluster-state.js';
import type { ClusterEvent } from '../../../src/supervisor/decide/cluster-event.js';
import type { Observation } from '../world.js';
import { hold, type Invariant } from './invariant.js';
import { emitted } from './telling.js';

/** What serves goes on serving, whatever is replaced, reloaded or recycled. */
export class Capacity implements Invariant {
  after({ before, state, event, effects }: Observation): void {
    if (state.shutdown !== undefined) return;
    if (before.slots !== state.slots || before.workers !== state.workers) {
      for (const slot of before.slots) this.#slot(before, state, slot, event);
    }
    const aborted = emitted(effects, 'reload-ended').some(
      (each) =>
        each.type === 'emit' && each.name === 'reload-ended' && each.event.outcome === 'aborted',
    );
    // On the way back the last slot may be taken over as it ends.
    const wasRollingOut = before.reload?.outcome === 'completed';
    if (aborted && wasRollingOut)
      for (const slot of before.slots) this.#stays(before, state, slot, event);
  }

  #slot(before: ClusterState, state: ClusterState, slot: Slot, event: ClusterEvent): void {
    const { index, worker: id } = slot;
    if (id === undefined || before.workers.get(id)?.state !== 'ready') return;
    const now = state.slots[index]!.worker;
    const serves = now !== undefined && state.workers.get(now)?.state === 'ready';
    if (serves || index >= state.desired || isOwnEnd(event, id)) return;
    hold('capacity does not fall for a replacement', false, () => ({ slot, event }));
  }

  /** Until a reload is aborted, its candidate has taken no place. */
  #stays(before: ClusterState, state: ClusterState, slot: Slot, event: ClusterEvent): void {
    const { index, worker: id } = slot;
    if (id === undefined || index >= state.desired || isOwnEnd(event, id)) return;
    if (before.workers.get(id)?.state !== 'ready') return;
    const stays = state.slots[index]!.worker === id;
    hold('when a reload aborts, the workers before it serve', stays, () => ({ slot, event }));
  }
}

/** By its own doing, and not by what is decided of it. */
function isOwnEnd(event: ClusterEvent, id: number): boolean {
  if (event.type === 'due') return event.timer.type === 'leave-due' && event.timer.worker === id;
  if (event.type !== 'worker' || event.worker !== id) return false;
  const { type } = event.event;
  return type === 'exited' || type === 'fatal';
}
