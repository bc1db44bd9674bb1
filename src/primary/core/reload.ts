import type { ReloadResult } from '../../snapshot/index.js';
import type { Asker, ClusterState, Slot } from './cluster-state.js';
import type { ProgramPaths, Release } from '../release.js';
import { noLongerAwait, requestReplacement } from './replacement.js';
import type { Step } from './step.js';
import { wantedSlots } from './workers.js';

/** Why no reload is begun or ended any more. */
const SHUTTING_DOWN = 'the cluster is shutting down';

/**
 * Replaces every worker by one of the program as it is on disk now, slot by
 * slot. At the first new worker that fails it is aborted: whatever has not been
 * replaced by then serves on. One that is under way is everybody's.
 */
export function reload(step: Step, reason: string, asker: Asker): void {
  if (step.state.shutdown !== undefined) {
    const { generation } = step.state.release;
    const result = { outcome: 'aborted', generation, reason: SHUTTING_DOWN } as const;
    return step.do({ type: 'answer-reload', asker, result });
  }
  step.set({ reloadAskers: [...step.state.reloadAskers, asker] });
  if (step.state.reload === undefined) begin(step, reason);
  // One that is on its way out already would wait for a reload that waits for its exit.
  if (asker.by === 'worker') noLongerAwait(step, { id: asker.worker });
}

/** The program that the new workers run, or why there is none. */
export function reloadTo(step: Step, program: ProgramPaths | Error): void {
  const { reload: underWay, lastReload: generation } = step.state;
  // The cluster may have begun to shut down meanwhile.
  if (underWay === undefined || underWay.release !== undefined) return;
  if (program instanceof Error) return end(step, program.message);
  const release = { ...program, generation };
  step.set({ reload: { ...underWay, release } });
  replaceNext(step, release);
}

/** A new worker of it has taken over. Workers that asked are told once it was the last: then they leave themselves. */
export function slotReloaded(step: Step): void {
  if (pendingSlots(step).length > 0) return;
  answer(step, resultOf(step, null), (asker) => asker.by === 'worker');
}

/** Whether nobody waits for the old worker of a slot to exit: it waits for the end of the reload itself. */
export function letsSlotGo({ state }: Step, slot: number): boolean {
  return hasAsked(state, slot);
}

/** The old worker of a slot has left or is not waited for; or it stays, for the reason given. */
export function slotConcluded(step: Step, slot: number, failure: string | null): void {
  const { reload: underWay, lastReload } = step.state;
  if (underWay?.release === undefined) return;
  if (failure === null) replaceNext(step, underWay.release);
  else end(step, `worker=${slot} gen=${lastReload}: ${failure}`);
}

/** The cluster is being shut down. */
export function cancelReload(step: Step): void {
  if (step.state.reload !== undefined) end(step, SHUTTING_DOWN);
}

function begin(step: Step, reason: string): void {
  const generation = step.state.lastReload + 1;
  step.set({ lastReload: generation, reload: { release: undefined, startedAt: step.now } });
  step.emit('reload-started', { generation, reason });
  step.do({ type: 'find-program' });
}

function replaceNext(step: Step, release: Release): void {
  // Looked at anew each time: the cluster may have been scaled meanwhile.
  const pending = pendingSlots(step);
  const slot = pending.find(({ index }) => !hasAsked(step.state, index)) ?? pending[0];
  if (slot !== undefined) {
    const request = { slot: slot.index, cause: 'reload', detail: 'reload', release } as const;
    return requestReplacement(step, request);
  }
  step.set({ release });
  end(step, null);
}

function end(step: Step, failure: string | null): void {
  const result = resultOf(step, failure);
  const { reloads, reload: ended } = step.state;
  step.set({
    reload: undefined,
    reloads: { ...reloads, [result.outcome]: reloads[result.outcome] + 1 },
  });
  step.emit('reload-ended', { ...result, durationMs: step.now - ended!.startedAt });
  answer(step, result, () => true);
}

function answer(step: Step, result: ReloadResult, whom: (asker: Asker) => boolean): void {
  const { reloadAskers } = step.state;
  step.set({ reloadAskers: reloadAskers.filter((asker) => !whom(asker)) });
  for (const asker of reloadAskers.filter(whom)) step.do({ type: 'answer-reload', asker, result });
}

function resultOf({ state }: Step, reason: string | null): ReloadResult {
  const outcome = reason === null ? 'completed' : 'aborted';
  return { outcome, generation: state.lastReload, reason };
}

/** Slots whose workers are of the release before. */
function pendingSlots({ state }: Step): readonly Slot[] {
  return wantedSlots(state).filter(({ release }) => release.generation !== state.lastReload);
}

/** Whether a worker of the slot waits for the reload. Its slot comes last. */
function hasAsked(state: ClusterState, slot: number): boolean {
  return state.reloadAskers.some((asker) => asker.by === 'worker' && asker.slot === slot);
}
