import type { ClusterState, Slot } from '../../../src/decide/cluster-state.js';
import type { ClusterEvent } from '../../../src/decide/input.js';
import type { Observation } from '../world.js';
import { hold, type Invariant } from './invariant.js';
import { emitted } from './telling.js';

/** A slot that serves goes on serving while workers are replaced, reloaded or recycled. */
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
    // A reload that reverts may take over its last slot in the step in which it ends.
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
    hold('capacity does not fall for a replacement', false, { slot, event });
  }

  /** In the step that aborts a reload, every ready worker stays in its slot. */
  #stays(before: ClusterState, state: ClusterState, slot: Slot, event: ClusterEvent): void {
    const { index, worker: id } = slot;
    if (id === undefined || index >= state.desired || isOwnEnd(event, id)) return;
    if (before.workers.get(id)?.state !== 'ready') return;
    const stays = state.slots[index]!.worker === id;
    hold('when a reload aborts, the workers before it serve', stays, { slot, event });
  }
}

/** Whether the event ends the worker by itself, and not by a decision of the core. */
function isOwnEnd(event: ClusterEvent, id: number): boolean {
  if (event.type === 'due') return event.timer.type === 'leave-due' && event.timer.worker === id;
  if (event.type !== 'worker' || event.worker !== id) return false;
  const { type } = event.event;
  return type === 'exited' || type === 'fatal';
}
