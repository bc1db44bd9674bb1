import type { FailureCause, ReloadResult } from '../../../contract/snapshot/index.js';
import { NO_FAILURES } from '../policies/restart.policy.js';
import type { ProgramPaths, Release } from '../../processes/release.js';
import type { Asker, ClusterState, ReloadUnderWay, Slot, Worker } from '../cluster-state.js';
import { noLongerAwait, requestReplacement, withdraw } from './replacement.js';
import type { Step } from '../step.js';
import { wantedSlots } from '../worker/workers.js';

/** Why no reload is begun or ended any more. */
const SHUTTING_DOWN = 'the cluster is shutting down';

/**
 * Replaces every worker by one of the program as it is on disk now, slot by
 * slot. If a worker of the new release fails, the reload is aborted, and the
 * slots that run that release go back to the one before. A reload that is under
 * way is everybody's.
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
  const underWay = step.state.reload;
  // The cluster may have begun to shut down meanwhile.
  if (underWay === undefined || underWay.release !== undefined) return;
  if (underWay.outcome !== 'completed') return bringBack(step, underWay, program);
  if (program instanceof Error) return end(step, 'aborted', program.message);
  const release = { ...program, generation: underWay.generation };
  step.set({ reload: { ...underWay, release, before: releaseBefore(step.state, release) } });
  replaceNext(step, release);
}

/** A new worker of it has taken over. Workers that asked are told once it was the last: then they leave themselves. */
export function slotReloaded(step: Step): void {
  const { reload: underWay } = step.state;
  if (underWay?.release === undefined) return;
  if (pendingSlots(step.state, underWay.release).length > 0) return;
  answer(step, resultOf(underWay), (asker) => asker.by === 'worker');
}

/** Whether nobody waits for the old worker of a slot to exit: it waits for the end of the reload itself. */
export function letsSlotGo({ state }: Step, slot: number): boolean {
  return hasAsked(state, slot);
}

/** The old worker of a slot has left or is not waited for; or it stays, for the reason given. */
export function slotConcluded(step: Step, slot: number, failure: string | null): void {
  const { reload: underWay } = step.state;
  if (underWay?.release === undefined) return;
  if (failure === null) return replaceNext(step, underWay.release);
  const detail = `worker=${slot} gen=${underWay.release.generation}: ${failure}`;
  if (underWay.outcome === 'completed') goBack(step, { ...underWay, reason: detail });
  else end(step, 'aborted', `${underWay.reason}; not every worker could go back: ${detail}`);
}

/**
 * A worker was lost that nobody had asked to go. If it is of the release that is
 * being rolled out, or is observed, the release before comes back. A kill from
 * outside says nothing about a release.
 */
export function releaseFailed(
  step: Step,
  { slot, generation }: Worker,
  cause: FailureCause,
  detail: string,
): void {
  if (cause === 'killed') return;
  const { reload: underWay, release, previous } = step.state;
  const reason = `worker=${slot} gen=${generation}: ${detail}`;
  if (underWay === undefined) {
    if (previous === undefined || generation !== release.generation) return;
    const outcome = 'reverted';
    const before = previous;
    goBack(step, { generation, release, before, startedAt: step.now, outcome, reason });
  } else if (underWay.outcome === 'completed' && underWay.before !== undefined) {
    if (generation === underWay.generation) goBack(step, { ...underWay, reason });
  }
}

/** The new release has lived well for `reload.observeMs`. */
export function endObservation(step: Step): void {
  step.disarm({ type: 'observation-over' });
  step.set({ previous: undefined });
}

/** The cluster is being shut down. */
export function cancelReload(step: Step): void {
  endObservation(step);
  if (step.state.reload !== undefined) end(step, 'aborted', SHUTTING_DOWN);
}

function begin(step: Step, reason: string): void {
  const generation = step.state.lastReload + 1;
  const nothing = { release: undefined, before: undefined, reason: null };
  step.set({
    lastReload: generation,
    reload: { ...nothing, generation, startedAt: step.now, outcome: 'completed' },
  });
  step.emit('reload-started', { generation, reason });
  step.do({ type: 'find-program' });
}

function replaceNext(step: Step, release: Release): void {
  // Looked at anew each time: the cluster may have been scaled meanwhile.
  const pending = pendingSlots(step.state, release);
  const slot = pending.find(({ index }) => !hasAsked(step.state, index)) ?? pending[0];
  if (slot !== undefined) {
    const request = { slot: slot.index, cause: 'reload', detail: 'reload', release } as const;
    return requestReplacement(step, request);
  }
  const { outcome, reason } = step.state.reload!;
  if (outcome === 'completed') adopt(step, release);
  end(step, outcome, reason);
}

/** Every worker runs the new release: it is observed, while there is another to go back to. */
function adopt(step: Step, release: Release): void {
  const { before } = step.state.reload!;
  const { observeMs } = step.options.reload;
  endObservation(step);
  step.set({ release });
  if (observeMs === 0 || before === undefined || isSameProgram(before, release)) return;
  step.set({ previous: before });
  step.arm({ type: 'observation-over' }, observeMs);
}

/** The new release has failed: the one before comes back, where its files are still there. */
function goBack(step: Step, failed: ReloadUnderWay): void {
  const { before, release, reason } = failed;
  const outcome = failed.outcome === 'completed' ? 'aborted' : failed.outcome;
  step.set({ reload: { ...failed, release: undefined, outcome } });
  withdraw(step, ({ cause }) => cause === 'reload', 'the reload was aborted');
  if (before === undefined || pendingSlots(step.state, before).length === 0) {
    return end(step, outcome, reason);
  }
  if (!isSameProgram(before, release!)) return step.do({ type: 'find-program', earlier: before });
  bringBack(step, failed, new Error('it was overwritten in place'));
}

/** @param files of the release before, or why they are not there. */
function bringBack(step: Step, underWay: ReloadUnderWay, files: ProgramPaths | Error): void {
  const { generation, reason } = underWay;
  const before = underWay.before!;
  endObservation(step);
  if (files instanceof Error) {
    const why = `the release before, gen=${before.generation}, cannot come back: ${files.message}`;
    return end(step, 'aborted', `${reason}; ${why}`);
  }
  step.set({ release: before, reload: { ...underWay, release: before } });
  step.emit('reload-reverting', { generation, to: before.generation, reason: reason! });
  // A slot without a worker starts the release before at once: it waits for nobody's turn.
  for (const { index, release } of wantedSlots(step.state)) {
    if (release.generation === before.generation) continue;
    step.setSlot(index, { release: before, failures: NO_FAILURES });
  }
  const isFailed = (each: object & { release: Release }) =>
    'candidate' in each && each.release.generation !== before.generation;
  withdraw(step, isFailed, 'its release is taken back');
  replaceNext(step, before);
}

function end(step: Step, outcome: ReloadResult['outcome'], reason: string | null): void {
  const { reloads, reload: ended } = step.state;
  const result = resultOf({ ...ended!, outcome, reason });
  step.set({ reload: undefined, reloads: { ...reloads, [outcome]: reloads[outcome] + 1 } });
  step.emit('reload-ended', { ...result, durationMs: step.now - ended!.startedAt });
  answer(step, result, () => true);
}

function answer(step: Step, result: ReloadResult, whom: (asker: Asker) => boolean): void {
  const { reloadAskers } = step.state;
  step.set({ reloadAskers: reloadAskers.filter((asker) => !whom(asker)) });
  for (const asker of reloadAskers.filter(whom)) step.do({ type: 'answer-reload', asker, result });
}

function resultOf({ outcome, generation, reason }: ReloadUnderWay): ReloadResult {
  return { outcome, generation, reason };
}

/** What a reload goes back to if it fails: the last release that stayed up. */
function releaseBefore(state: ClusterState, next: ProgramPaths): Release | undefined {
  const { release, previous, everReady } = state;
  // The same again, while it is observed, says nothing better of it.
  if (previous !== undefined && isSameProgram(release, next)) return previous;
  const isWell = everReady && wantedSlots(state).every(({ failures }) => !failures.degraded);
  return isWell ? release : undefined;
}

function isSameProgram(a: ProgramPaths, b: ProgramPaths): boolean {
  return a.script === b.script && a.cwd === b.cwd;
}

/** Slots that run another release, or would: one that is empty starts what it is given. */
function pendingSlots(state: ClusterState, { generation }: Release): readonly Slot[] {
  return wantedSlots(state).filter(({ worker, release }) => {
    const current = worker === undefined ? undefined : state.workers.get(worker);
    return (current ?? release).generation !== generation;
  });
}

/** Whether a worker of the slot waits for the reload. Its slot comes last. */
function hasAsked(state: ClusterState, slot: number): boolean {
  return state.reloadAskers.some((asker) => asker.by === 'worker' && asker.slot === slot);
}
