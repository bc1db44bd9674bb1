import { NO_FAILURES } from '../policies/failure.policy.js';
import type { WorkerEventOf } from '../input.js';
import {
  type Candidacy,
  type ClusterState,
  isWanted,
  type ReadyWorker,
  type ReplacementRequest,
  replacementsOf,
  type Worker,
  type WorkerId,
} from '../cluster-state.js';
import type { Step } from '../step.js';
import { answerBeforeDrain, awaitsAnswer } from './answers.js';
import { countRestart, fork, retire, scheduleRestart } from '../worker/worker-actions.js';

/** A new worker must live this long before its health check: most faulty releases fail within a second. */
export const CANARY_MS = 1_000;

/** The maximum time for a candidate's health check. A check that takes longer has failed. */
const CHECK_TIMEOUT_MS = 2_000;

/**
 * Asks for a replacement. The new worker starts while the old worker still serves. The old worker
 * drains once the new worker is ready and, in a reload, has passed its checks. If the new worker
 * fails, the old worker stays. Replacements overlap only in a reload.
 */
export function requestReplacement(step: Step, request: ReplacementRequest): void {
  step.set({ replacementsWaiting: [...step.state.replacementsWaiting, request] });
}

/** Whether a replacement selected by `which` is waiting or under way. */
export function isRequested(
  state: ClusterState,
  which: (request: ReplacementRequest) => boolean,
): boolean {
  return replacementsOf(state).some(which) || state.replacementsWaiting.some(which);
}

/** A reload replaces a quarter of the slots at once (Kubernetes' default `maxSurge`), and boots one worker at a time. */
export function hasRoom(state: ClusterState): boolean {
  const underWay = replacementsOf(state);
  if (underWay.length >= Math.ceil(state.desired / 4)) return false;
  return underWay.every(({ cause, phase }) => cause === 'reload' && phase !== 'booting');
}

/** Called after each event: starts the next candidate. */
export function beginNextReplacement(step: Step): void {
  const [request, ...waiting] = step.state.replacementsWaiting;
  const mayOverlap = request?.cause === 'reload' && hasRoom(step.state);
  if (request === undefined || (replacementsOf(step.state).length > 0 && !mayOverlap)) return;
  step.set({ replacementsWaiting: waiting });
  const { slot, cause, detail } = request;
  const { worker, release: current } = step.state.slots[slot]!;
  // The slot may have been reloaded while the request waited, so the slot's current release is used.
  const release = cause === 'reload' ? request.release : current;
  if (cause !== 'reload' && worker !== undefined) {
    step.emit('worker-replacing', { worker, cause, detail });
  }
  step.disarm({ type: 'start-due', slot });
  const candidate = fork(step, slot, release);
  step.setSlot(slot, { replacement: { ...request, release, phase: 'booting', candidate } });
}

export function onCandidateReady(step: Step, worker: ReadyWorker): void {
  const candidacy = candidacyOf(step, worker, 'booting');
  if (candidacy === undefined) return;
  // Only the candidate of a new release has to pass further checks.
  const isNew = candidacy.cause === 'reload' && step.state.reload?.outcome === 'completed';
  if (!isNew) return takeOver(step, candidacy);
  step.setSlot(worker.slot, { replacement: { ...candidacy, phase: 'canary' } });
  step.armFor(worker, 'canary-over', CANARY_MS);
}

export function endCanary(step: Step, worker: ReadyWorker): void {
  const candidacy = candidacyOf(step, worker, 'canary');
  if (candidacy === undefined) return;
  if (worker.threads === 'settled') return checkHealth(step, candidacy);
  step.setSlot(worker.slot, { replacement: { ...candidacy, phase: 'verifying' } });
}

/** Continues the candidacy of a worker whose threads can load their code. */
export function onThreadsVerified(step: Step, worker: Worker): void {
  const candidacy = candidacyOf(step, worker, 'verifying');
  if (candidacy !== undefined) checkHealth(step, candidacy);
}

function checkHealth(step: Step, candidacy: Candidacy): void {
  const worker = { id: candidacy.candidate };
  step.setSlot(candidacy.slot, { replacement: { ...candidacy, phase: 'checking' } });
  step.send(worker, { type: 'check' });
  step.armFor(worker, 'check-overdue', CHECK_TIMEOUT_MS);
}

export function judgeHealth(
  step: Step,
  worker: ReadyWorker,
  { healthy, detail }: WorkerEventOf<'checked'>,
): void {
  const candidacy = candidacyOf(step, worker, 'checking');
  if (candidacy === undefined) return;
  step.disarm({ type: 'check-overdue', worker: worker.id });
  if (healthy) takeOver(step, candidacy);
  else fail(step, candidacy, `its health check failed: ${detail ?? 'no reason given'}`);
}

export function onCheckOverdue(step: Step, worker: ReadyWorker): void {
  const candidacy = candidacyOf(step, worker, 'checking');
  if (candidacy === undefined) return;
  fail(step, candidacy, `its health check took longer than ${CHECK_TIMEOUT_MS} ms`);
}

/** The candidate takes the place of the old worker, which drains. */
function takeOver(step: Step, candidacy: Candidacy): void {
  const { slot, cause, detail, release, candidate } = candidacy;
  const request = { slot, cause, detail, release };
  const { worker, failures } = step.state.slots[slot]!;
  const predecessor = worker === undefined ? undefined : step.worker(worker);
  step.setSlot(slot, {
    worker: candidate,
    release,
    // The failures of the old release say nothing about the new release.
    failures: cause === 'reload' ? NO_FAILURES : failures,
  });
  answerBeforeDrain(step, cause, slot);
  // A failed worker's restart was already counted.
  if (predecessor === undefined || predecessor.state === 'draining') {
    return end(step, request, null);
  }
  // The replacement of a worker that was too large counts as a restart of the slot.
  if (cause === 'memory') countRestart(step, slot, cause);
  retire(step, predecessor, cause);
  if (awaitsAnswer(step.state, slot)) return end(step, request, null);
  const handingOver = { ...request, phase: 'handing-over', predecessor: predecessor.id } as const;
  step.setSlot(slot, { replacement: handingOver });
}

/** Ends the wait for an old worker that has exited or that itself waits for the replacement. */
export function noLongerAwait(step: Step, slot: number, worker: WorkerId): void {
  const { replacement } = step.state.slots[slot]!;
  if (replacement?.phase === 'handing-over' && replacement.predecessor === worker) {
    end(step, replacement, null);
  }
}

/** Ends the candidacy of a worker that leaves. @returns whether the worker was a candidate. */
export function loseCandidate(step: Step, worker: Worker, reason: string): boolean {
  const candidacy = candidacyOf(step, worker);
  if (candidacy !== undefined) fail(step, candidacy, reason);
  return candidacy !== undefined;
}

/** Withdraws replacements: removes waiting requests, and ends candidacies and waits for a hand-over. */
export function withdraw(
  step: Step,
  which: (request: ReplacementRequest) => boolean,
  reason: string,
): void {
  const { replacementsWaiting } = step.state;
  step.set({ replacementsWaiting: replacementsWaiting.filter((each) => !which(each)) });
  for (const each of replacementsOf(step.state).filter(which)) {
    if (each.phase === 'handing-over') end(step, each, null);
    else fail(step, each, reason);
  }
}

export function warnNotReplaced(step: Step, slot: number, message: string): void {
  const { worker } = step.state.slots[slot]!;
  if (worker !== undefined) step.emit('warning', { message, worker });
  else step.emit('warning', { message: `the worker in slot ${slot} ${message}` });
}

/** The candidate leaves, and the old worker stays. */
function fail(step: Step, candidacy: Candidacy, reason: string): void {
  const { slot, cause, candidate } = candidacy;
  const worker = step.worker(candidate);
  if (worker !== undefined && worker.state !== 'draining') retire(step, worker, cause);
  const wanted = isWanted(step.state, slot);
  if (wanted && step.state.slots[slot]!.worker === undefined) scheduleRestart(step, slot);
  end(step, candidacy, wanted ? reason : null);
}

/** Ends a replacement. Its requester (reload, restart or upkeep) then reads `step.ended`. */
function end(step: Step, request: ReplacementRequest, failure: string | null): void {
  step.setSlot(request.slot, { replacement: undefined });
  step.ended = { ...request, failure };
}

/** The candidacy of a worker, if the worker is the candidate and has reached the phase. */
function candidacyOf(
  step: Step,
  worker: Pick<Worker, 'id' | 'slot'>,
  phase?: Candidacy['phase'],
): Candidacy | undefined {
  const { replacement } = step.slotOf(worker);
  if (replacement === undefined || replacement.phase === 'handing-over') return undefined;
  if (replacement.candidate !== worker.id) return undefined;
  return phase === undefined || replacement.phase === phase ? replacement : undefined;
}
