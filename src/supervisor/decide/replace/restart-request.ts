import type { RestartResult } from '../../../contract/snapshot/index.js';
import type { ClusterEvent } from '../cluster-event.js';
import type { Asker, ReplacementRequest } from '../cluster-state.js';
import { noLongerAwait, requestReplacement } from './replacement.js';
import type { Step } from '../step.js';
import { isWanted } from '../worker/workers.js';

/** Why no worker is restarted any more. */
const SHUTTING_DOWN = 'the cluster is shutting down';

/**
 * Replaces the worker of one slot, by one of the same release. Where it is
 * being restarted already, that is everybody's who asks; a replacement for
 * another cause comes before.
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
  if (refusal !== undefined) return tell(step, asker, slot, refusal);
  const isUnderWay = [state.replacement, ...state.replacementsWaiting].some(
    (each) => each?.cause === 'restart' && each.slot === slot,
  );
  step.set({ restartAskers: [...state.restartAskers, { slot, asker }] });
  if (!isUnderWay) {
    const { release } = state.slots[slot]!;
    requestReplacement(step, { slot, cause: 'restart', detail: reason, release, snapshotTo });
  }
  // One that is on its way out already would wait for a replacement that waits for its exit.
  if (asker.by === 'worker') noLongerAwait(step, { id: asker.worker });
}

/** The new worker serves: the old one, if it has asked, is told while it can still hear. */
export function restartTookOver(step: Step, { slot }: ReplacementRequest): void {
  answer(step, slot, null, (asker) => asker.by === 'worker' && asker.slot === slot);
}

/** Whether a worker of the slot waits for a restart: nobody waits for its exit then. */
export function awaitsRestart({ state }: Step, slot: number): boolean {
  return state.restartAskers.some(({ asker }) => asker.by === 'worker' && asker.slot === slot);
}

/** The old worker has left or is not waited for; or it stays, for the reason given. */
export function restartConcluded(
  step: Step,
  { slot }: ReplacementRequest,
  failure: string | null,
): void {
  const isGone = !isWanted(step.state, slot);
  answer(step, slot, isGone ? 'its slot was scaled away' : failure, () => true);
  if (failure === null || isGone) return;
  const message = `is not replaced (cause=restart): ${failure}`;
  const { worker } = step.state.slots[slot]!;
  if (worker !== undefined) step.emit('warning', { message, worker });
  else step.emit('warning', { message: `the worker of slot ${slot} ${message}` });
}

/** The cluster is being shut down. */
export function cancelRestarts(step: Step): void {
  for (const { slot, asker } of step.state.restartAskers) tell(step, asker, slot, SHUTTING_DOWN);
  step.set({ restartAskers: [] });
}

function answer(
  step: Step,
  slot: number,
  reason: string | null,
  whom: (asker: Asker) => boolean,
): void {
  const { restartAskers } = step.state;
  const told = restartAskers.filter((each) => each.slot === slot && whom(each.asker));
  step.set({ restartAskers: restartAskers.filter((each) => !told.includes(each)) });
  for (const { asker } of told) tell(step, asker, slot, reason);
}

function tell(step: Step, asker: Asker, slot: number, reason: string | null): void {
  const outcome = reason === null ? 'completed' : 'aborted';
  const result: RestartResult = { outcome, slot, reason };
  step.do({ type: 'answer-restart', asker, result });
}
