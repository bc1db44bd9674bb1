import type { ReloadResult, ReplaceCause } from '../../../contract/snapshot/index.js';
import type { Asker, ClusterState, ReloadUnderWay } from '../cluster-state.js';
import type { Step } from '../step.js';
import { slotsOfOtherReleases } from '../worker/workers.js';

/**
 * The old worker of a slot is about to drain. A worker that asked for the
 * reload or the restart is told now that it is done: it can still hear it.
 */
export function answerBeforeDrain(step: Step, cause: ReplaceCause, slot: number): void {
  if (cause === 'restart') {
    return answerRestart(step, slot, null, (asker) => isOfSlot(asker, slot));
  }
  const { reload } = step.state;
  if (cause !== 'reload' || reload?.release === undefined) return;
  if (slotsOfOtherReleases(step.state, reload.release).length > 0) return;
  answerReload(step, resultOf(reload), ({ by }) => by === 'worker');
}

/** Whether a worker of the slot waits for the end of the reload. */
export function awaitsReload({ reloadAskers }: ClusterState, slot: number): boolean {
  return reloadAskers.some((asker) => isOfSlot(asker, slot));
}

/** Whether a worker of the slot waits for an answer: then nobody waits for it to exit. */
export function awaitsAnswer(state: ClusterState, slot: number): boolean {
  const forRestart = state.restartAskers.some(({ asker }) => isOfSlot(asker, slot));
  return forRestart || awaitsReload(state, slot);
}

export function answerReload(
  step: Step,
  result: ReloadResult,
  whom: (asker: Asker) => boolean = () => true,
): void {
  const { reloadAskers } = step.state;
  step.set({ reloadAskers: reloadAskers.filter((asker) => !whom(asker)) });
  for (const asker of reloadAskers.filter(whom)) step.do({ type: 'answer-reload', asker, result });
}

export function resultOf({ outcome, generation, reason }: ReloadUnderWay): ReloadResult {
  return { outcome, generation, reason };
}

/** @param reason why the worker was not replaced. */
export function answerRestart(
  step: Step,
  slot: number,
  reason: string | null,
  whom: (asker: Asker) => boolean = () => true,
): void {
  const { restartAskers } = step.state;
  const told = restartAskers.filter((each) => each.slot === slot && whom(each.asker));
  step.set({ restartAskers: restartAskers.filter((each) => !told.includes(each)) });
  for (const { asker } of told) tellRestarted(step, asker, slot, reason);
}

export function tellRestarted(step: Step, asker: Asker, slot: number, reason: string | null): void {
  const outcome = reason === null ? 'completed' : 'aborted';
  step.do({ type: 'answer-restart', asker, result: { outcome, slot, reason } });
}

function isOfSlot(asker: Asker, slot: number): boolean {
  return asker.by === 'worker' && asker.slot === slot;
}
