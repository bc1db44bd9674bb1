import type { ClusterState, Slot } from '../../../src/supervisor/decide/cluster-state.js';
import type { ClusterEvent } from '../../../src/supervisor/decide/cluster-event.js';
import type { Observation } from '../world.js';
import { hold, type Invariant, isWanted, servingSlots } from './invariant.js';
import { emitted } from './telling.js';

/** A slot that serves goes on serving while workers are replaced, reloaded or recycled. */
export class Capacity implements Invariant {
  after({ before, state, event, effects }: Observation): void {
    if (state.shutdown !== undefined) return;
    this.#bounds(before, state, event);
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

  /** The load changes the number by one, within the bounds, and only while every slot serves. */
  #bounds(before: ClusterState, state: ClusterState, { type }: ClusterEvent): void {
    if (type !== 'load-due' || state.desired === before.desired) return;
    const { min, max, floor = 0 } = state.elastic!;
    const isWithin = state.desired >= Math.max(min, floor) && state.desired <= Math.max(max, floor);
    hold('the load leaves the number within its bounds', isWithin, () => state.elastic);
    const isOne = Math.abs(state.desired - before.desired) === 1;
    hold('the load adds or removes one worker at a time', isOne, () => state.desired);
    const serving = servingSlots(before).every(
      ({ worker }) => before.workers.get(worker ?? 0)?.state === 'ready',
    );
    hold('the load changes nothing while a slot does not serve', serving, () => before.slots);
  }

  #slot(before: ClusterState, state: ClusterState, slot: Slot, event: ClusterEvent): void {
    const { index, worker: id } = slot;
    if (id === undefined || before.workers.get(id)?.state !== 'ready') return;
    const now = state.slots[index]!.worker;
    const serves = now !== undefined && state.workers.get(now)?.state === 'ready';
    if (serves || !isWanted(state, index) || isOwnEnd(event, id)) return;
    hold('capacity does not fall for a replacement', false, () => ({ slot, event }));
  }

  /** In the step that aborts a reload, every ready worker stays in its slot. */
  #stays(before: ClusterState, state: ClusterState, slot: Slot, event: ClusterEvent): void {
    const { index, worker: id } = slot;
    if (id === undefined || !isWanted(state, index) || isOwnEnd(event, id)) return;
    if (before.workers.get(id)?.state !== 'ready') return;
    const stays = state.slots[index]!.worker === id;
    hold('when a reload aborts, the workers before it serve', stays, () => ({ slot, event }));
  }
}

/** Whether the event ends the worker by itself, and not by a decision of the core. */
function isOwnEnd(event: ClusterEvent, id: number): boolean {
  if (event.type === 'due') return event.timer.type === 'leave-due' && event.timer.worker === id;
  if (event.type !== 'worker' || event.worker !== id) return false;
  const { type } = event.event;
  return type === 'exited' || type === 'fatal';
}
