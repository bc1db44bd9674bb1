import {
  type FailureCause,
  type ReloadResult,
  SHUTTING_DOWN,
} from '../../contract/snapshot/types.js';
import { NO_FAILURES } from '../policies/failure.policy.js';
import {
  type ClusterState,
  type ProgramPaths,
  type Release,
  type ReloadUnderWay,
  type ReplacementRequest,
  replacementsOf,
  slotsOfOtherReleases,
  wantedSlots,
  type Worker,
} from '../cluster-state.js';
import { answerRequests, awaitsReload } from './answers.js';
import { hasRoom, requestReplacement, withdraw } from './replacement.js';
import type { Step } from '../step.js';

/** After this many failures of serving workers, a release is rolled back. */
const MAX_STRIKES = 2;

/** Maximum number of remembered failures. Workers of a real app fail with only a few different errors. */
const MAX_ENDINGS = 32;

/**
 * Replaces every worker with a worker that runs the program now on disk. Further requests during a
 * reload get the result of that reload.
 *
 * 1. `reload` begins the reload, and looks for the program. `programFound` takes the result.
 * 2. `settleReload` replaces the slots, as described in replacement.ts. When no slot is left, the
 *    reload ends, and its release is observed.
 * 3. If the new release fails (see `countsAgainst`), the reload is aborted. `goBack` looks for the files of
 *    the release before, `bringBack` makes that release current, and `settleReload` replaces the
 *    slots in the same way.
 */
export function reload(step: Step, reason: string): void {
  if (step.state.reload !== undefined) return;
  const generation = step.state.lastReload + 1;
  const nothing = { release: undefined, before: undefined, reason: null };
  step.set({
    lastReload: generation,
    reload: { ...nothing, generation, startedAt: step.now, outcome: 'completed' },
  });
  step.emit('reload-started', { generation, reason });
  step.do({ type: 'find-program' });
}

/** Takes the program that the new workers run, or the reason why no program was found. */
export function programFound(step: Step, program: ProgramPaths | Error): void {
  const underWay = step.state.reload;
  // A shutdown may have cancelled the reload during the search for the program.
  if (underWay === undefined || underWay.release !== undefined) return;
  if (underWay.outcome !== 'completed') return bringBack(step, underWay, program);
  if (program instanceof Error) return end(step, 'aborted', program.message);
  const release = { ...program, generation: underWay.generation };
  const before = releaseBefore(step.state, release);
  step.set({ strikes: 0, reload: { ...underWay, release, before } });
}

/** Called after each event: replaces the next slot, and finally ends the reload. */
export function settleReload(step: Step): void {
  const { reload: underWay } = step.state;
  if (underWay?.release === undefined) return;
  const { release, outcome, reason } = underWay;
  const failure = failureOf(step, release);
  if (failure !== undefined) {
    if (outcome === 'completed') return goBack(step, { ...underWay, reason: failure });
    return end(step, 'aborted', `${reason}; not every worker could be rolled back: ${failure}`);
  }
  const isOwn = ({ cause }: ReplacementRequest): boolean => cause === 'reload';
  const begun = replacementsOf(step.state).filter(isOwn);
  if (begun.length > 0 && !hasRoom(step.state)) return;
  if (step.state.replacementsWaiting.some(isOwn)) return;
  // The slots are read after each event, because the cluster may have been scaled.
  const pending = slotsOfOtherReleases(step.state, release).filter(
    ({ replacement }) => replacement?.cause !== 'reload',
  );
  // The slot of a worker that waits for the reload comes last, after all others.
  const last = begun.length === 0 ? pending[0] : undefined;
  const slot = pending.find(({ index }) => !awaitsReload(step.state, index)) ?? last;
  if (slot !== undefined) {
    const request = { slot: slot.index, cause: 'reload', detail: 'reload', release } as const;
    return requestReplacement(step, request);
  }
  if (begun.length > 0) return;
  if (outcome === 'completed') adopt(step, release);
  end(step, outcome, reason);
}

function failureOf({ ended }: Step, { generation }: Release): string | undefined {
  if (ended?.cause !== 'reload' || ended.release.generation !== generation) return undefined;
  return ended.failure === null
    ? undefined
    : `worker=${ended.slot} gen=${generation}: ${ended.failure}`;
}

/**
 * Called when a worker has failed. If its release is being rolled out or observed, and the failure
 * counts against that release, the cluster rolls back.
 */
export function releaseFailed(
  step: Step,
  worker: Worker,
  cause: FailureCause,
  detail: string,
): void {
  // A kill from outside says nothing about a release.
  if (cause === 'killed') return;
  const { reload: underWay, release, previous } = step.state;
  const { slot, generation } = worker;
  const watched: ReloadUnderWay = underWay ?? {
    generation: release.generation,
    release,
    before: previous,
    startedAt: step.now,
    outcome: 'reverted',
    reason: null,
  };
  const isWatched =
    (underWay === undefined || underWay.outcome === 'completed') &&
    generation === watched.generation;
  const { before } = watched;
  const isToBlame =
    before !== undefined && isWatched && countsAgainst(step, worker, before, detail);
  noteEnding(step, generation, detail);
  if (!isToBlame) return;
  goBack(step, { ...watched, reason: `worker=${slot} gen=${generation}: ${detail}` });
}

/**
 * Whether a failure shows that the release does not work: the worker never became ready, or two
 * workers failed early with errors that the previous release did not have. A request may cause a
 * single failure, and a client must not be able to roll back a release with one request.
 */
function countsAgainst(step: Step, worker: Worker, before: Release, detail: string): boolean {
  if (worker.state === 'starting' || worker.readyAt === undefined) return true;
  if (step.now - worker.readyAt >= step.options.reload.observeMs) return false;
  const isOld = step.state.endings.some(
    (each) => each.generation <= before.generation && each.text === detail,
  );
  if (isOld) return false;
  const strikes = step.state.strikes + 1;
  step.set({ strikes });
  return strikes >= MAX_STRIKES;
}

function noteEnding(step: Step, generation: number, text: string): void {
  const others = step.state.endings.filter(
    (each) => each.generation !== generation || each.text !== text,
  );
  step.set({ endings: [...others, { generation, text }].slice(-MAX_ENDINGS) });
}

/** Ends the observation of a release. From now on, a failure does not cause a rollback. */
export function endObservation(step: Step): void {
  step.disarm({ type: 'observation-over' });
  step.set({ previous: undefined });
}

export function cancelReload(step: Step): void {
  endObservation(step);
  if (step.state.reload !== undefined) end(step, 'aborted', SHUTTING_DOWN);
}

/** Called when every worker runs the new release. Observes the release if an earlier release works. */
function adopt(step: Step, release: Release): void {
  const { before } = step.state.reload!;
  const { observeMs } = step.options.reload;
  endObservation(step);
  step.set({ release });
  if (observeMs === 0 || before === undefined || isSameProgram(before, release)) return;
  step.set({ previous: before });
  step.arm({ type: 'observation-over' }, observeMs);
}

/** Rolls back to the previous release, if its files still exist. */
function goBack(step: Step, failed: ReloadUnderWay): void {
  const { before, release, reason } = failed;
  const outcome = failed.outcome === 'completed' ? 'aborted' : failed.outcome;
  step.set({ reload: { ...failed, release: undefined, outcome } });
  withdraw(step, ({ cause }) => cause === 'reload', 'the reload was aborted');
  if (before === undefined || slotsOfOtherReleases(step.state, before).length === 0) {
    return end(step, outcome, reason);
  }
  if (!isSameProgram(before, release!)) return step.do({ type: 'find-program', earlier: before });
  bringBack(step, failed, new Error('the new release has the same path'));
}

/** @param files the paths of the previous release, or why they are missing. */
function bringBack(step: Step, underWay: ReloadUnderWay, files: ProgramPaths | Error): void {
  const { generation, reason } = underWay;
  const before = underWay.before!;
  endObservation(step);
  if (files instanceof Error) {
    const why = `the previous release, gen=${before.generation}, cannot be restored: ${files.message}`;
    return end(step, 'aborted', `${reason}; ${why}`);
  }
  step.set({ release: before, reload: { ...underWay, release: before } });
  step.emit('reload-reverting', { generation, to: before.generation, reason: reason! });
  // A slot without a worker starts the previous release now, without waiting for its turn.
  for (const { index, release } of wantedSlots(step.state)) {
    if (release.generation === before.generation) continue;
    step.setSlot(index, { release: before, failures: NO_FAILURES });
  }
  const isFailed = (each: object & { release: Release }) =>
    'candidate' in each && each.release.generation !== before.generation;
  withdraw(step, isFailed, 'its release is being rolled back');
}

function end(step: Step, outcome: ReloadResult['outcome'], reason: string | null): void {
  const { reloads, reload: ended } = step.state;
  const { generation, startedAt } = ended!;
  const result = { outcome, generation, reason };
  step.set({ reload: undefined, reloads: { ...reloads, [outcome]: reloads[outcome] + 1 } });
  step.emit('reload-ended', { ...result, durationMs: step.now - startedAt });
  answerRequests(step, { type: 'reloaded', result }, (request) => request.for === 'reload');
}

/** The release to which a failed reload is rolled back: the last release that stayed up. */
function releaseBefore(state: ClusterState, next: ProgramPaths): Release | undefined {
  const { release, previous, everReady } = state;
  // Reloading a program under observation does not prove that it works: `previous` is kept.
  if (previous !== undefined && isSameProgram(release, next)) return previous;
  const isWell = everReady && wantedSlots(state).every(({ failures }) => !failures.degraded);
  return isWell ? release : undefined;
}

function isSameProgram(a: ProgramPaths, b: ProgramPaths): boolean {
  return a.script === b.script && a.cwd === b.cwd;
}
