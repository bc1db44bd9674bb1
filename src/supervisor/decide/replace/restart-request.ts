import type { ClusterEvent } from '../cluster-event.js';
import type { ClusterState } from '../cluster-state.js';
import { answerRestart, tellRestarted } from './answers.js';
import { isRequested, noLongerAwait, requestReplacement, warnNotReplaced } from './replacement.js';
import type { Step } from '../step.js';
import { isWanted } from '../worker/workers.js';

/** Why no worker is restarted any more. */
const SHUTTING_DOWN = 'the cluster is shutting down';

/**
 * Replaces the worker of one slot by one of the same release. A restart under
 * way answers everybody who asks for it. A replacement for another cause comes
 * first.
 */
export function restart(
  step: Step,
  { slot, reason, asker, snapshotTo }: Extract<ClusterEvent, { type: 'restart' }>,
): void {
  const { state } = step;
  const refusal =
    state.shutdown !== undefined
      ? SHUTTING_DOWN
      : isWanted(state, slot)
        ? undefined
        : `there is no slot ${slot}: slots are 0 to ${state.desired - 1}`;
  if (refusal !== undefined) return tellRestarted(step, asker, slot, refusal);
  step.set({ restartAskers: [...state.restartAskers, { slot, asker }] });
  if (!isRestarting(state, slot)) {
    const { release } = state.slots[slot]!;
    requestReplacement(step, { slot, cause: 'restart', detail: reason, release, snapshotTo });
  }
  // One that is on its way out already would wait for a replacement that waits for its exit.
  if (asker.by === 'worker') noLongerAwait(step, { id: asker.worker });
}

/** After each event: tells those who wait for a restart that has ended, or whose slot is gone. */
export function settleRestarts(step: Step): void {
  const slots = new Set(step.state.restartAskers.map(({ slot }) => slot));
  for (const slot of slots) if (!isRestarting(step.state, slot)) conclude(step, slot);
}

/** The cluster is being shut down. */
export function cancelRestarts(step: Step): void {
  for (const { slot, asker } of step.state.restartAskers) {
    tellRestarted(step, asker, slot, SHUTTING_DOWN);
  }
  step.set({ restartAskers: [] });
}

function conclude(step: Step, slot: number): void {
  if (!isWanted(step.state, slot)) return answerRestart(step, slot, 'its slot was scaled away');
  const failure = step.ended?.failure ?? null;
  answerRestart(step, slot, failure);
  if (failure === null) return;
  warnNotReplaced(step, slot, `is not replaced (cause=restart): ${failure}`);
}

function isRestarting(state: ClusterState, slot: number): boolean {
  return isRequested(state, (each) => each.cause === 'restart' && each.slot === slot);
}
