import type { HealthVerdict } from '../../../contract/snapshot/index.js';
import { NO_FAILURES } from '../policies/restart.policy.js';
import type {
  Candidacy,
  HandingOver,
  Replacement,
  ReplacementRequest,
  Worker,
} from '../cluster-state.js';
import { retire } from '../worker/departure.js';
import { scheduleRestart } from '../restart.js';
import type { Step } from '../step.js';
import { fork, isWanted } from '../worker/workers.js';

/** What the asker of a replacement makes of its turns: the reload, a restart, or the upkeep of a worker. */
export interface ReplacementAskers {
  /** The new worker serves in the place of the old one, which has yet to drain. */
  tookOver(step: Step, request: ReplacementRequest): void;
  /** Whether nobody waits for the old worker to exit: it waits for the end of all this itself. */
  letsGo(step: Step, request: ReplacementRequest): boolean;
  /** The old worker has left, or it stays, for the reason given. */
  concluded(step: Step, request: ReplacementRequest, failure: string | null): void;
}

/** A candidate's health check that takes longer has failed. */
const CHECK_TIMEOUT_MS = 2_000;

/** What happens to the candidate of a replacement. */
export type CandidateEvent =
  | { readonly type: 'ready' }
  | { readonly type: 'canary-over' }
  /** Its threads can do their work. */
  | { readonly type: 'proven' }
  | ({ readonly type: 'checked'; readonly id: number } & HealthVerdict)
  | { readonly type: 'check-overdue' }
  | { readonly type: 'lost'; readonly reason: string };

type Handler<E extends CandidateEvent['type']> = (
  step: Step,
  candidacy: Candidacy,
  event: Extract<CandidateEvent, { type: E }>,
) => void;

type CandidacyTable = {
  readonly [E in CandidateEvent['type']]: { readonly [P in Candidacy['phase']]: Handler<E> };
};

const nothing = (): void => {};

/** What a candidate has to pass before the old worker drains, by what happens and how far it has come. */
const CANDIDACY: CandidacyTable = {
  ready: { booting: beginCanary, canary: nothing, proving: nothing, checking: nothing },
  'canary-over': { booting: nothing, canary: endCanary, proving: nothing, checking: nothing },
  proven: { booting: nothing, canary: nothing, proving: check, checking: nothing },
  checked: { booting: nothing, canary: nothing, proving: nothing, checking: judge },
  'check-overdue': { booting: nothing, canary: nothing, proving: nothing, checking: timeOut },
  lost: { booting: fail, canary: fail, proving: fail, checking: fail },
};

/**
 * Asks for a replacement: the new worker is started beside the old one, and
 * only when it is ready, and for a reload has proven itself, does the old one
 * drain. Where the new one fails, the old one stays. One at a time.
 */
export function requestReplacement(step: Step, request: ReplacementRequest): void {
  step.set({ replacementsWaiting: [...step.state.replacementsWaiting, request] });
  beginNext(step);
}

/** Tells a replacement what happened to its candidate. @returns whether that worker is one. */
export function tellCandidate(
  step: Step,
  { id }: Pick<Worker, 'id'>,
  event: CandidateEvent,
): boolean {
  const { replacement } = step.state;
  if (replacement === undefined || replacement.phase === 'handing-over') return false;
  if (replacement.candidate !== id) return false;
  const handle = CANDIDACY[event.type][replacement.phase] as Handler<CandidateEvent['type']>;
  handle(step, replacement, event as never);
  return true;
}

/** A worker has left its slot, or is about to. @returns whether its slot had not come to depend on it. */
export function loseContender(step: Step, worker: Worker, reason: string): boolean {
  return tellCandidate(step, worker, { type: 'lost', reason });
}

/** A worker has exited, or waits itself for the end of what replaces it. */
export function noLongerAwait(step: Step, { id }: Pick<Worker, 'id'>): void {
  const { replacement } = step.state;
  if (replacement?.phase === 'handing-over' && replacement.predecessor === id) {
    end(step, replacement, null);
  }
}

/** Whether a replacement of the slot is waiting or under way. */
export function isBeingReplaced(step: Step, slot: number): boolean {
  const { replacement, replacementsWaiting } = step.state;
  return replacement?.slot === slot || replacementsWaiting.some((each) => each.slot === slot);
}

/** Takes back requests: one that waits is dropped, a candidate leaves, a predecessor is not waited for. */
export function withdraw(
  step: Step,
  which: (request: ReplacementRequest | Replacement) => boolean,
  reason: string,
): void {
  const { replacement, replacementsWaiting } = step.state;
  step.set({ replacementsWaiting: replacementsWaiting.filter((each) => !which(each)) });
  if (replacement === undefined || !which(replacement)) return;
  if (replacement.phase === 'handing-over') end(step, replacement, null);
  else fail(step, replacement, { reason });
}

/** The cluster is being shut down: nothing is replaced any more. */
export function cancelReplacements(step: Step): void {
  step.set({ replacement: undefined, replacementsWaiting: [] });
}

function beginNext(step: Step): void {
  const [request, ...waiting] = step.state.replacementsWaiting;
  if (step.state.replacement !== undefined || request === undefined) return;
  step.set({ replacementsWaiting: waiting });
  const { slot, cause, detail } = request;
  if (!isWanted(step.state, slot)) return concluded(step, request, null);
  const { worker, release: current } = step.state.slots[slot]!;
  // The slot may have been reloaded while this one waited.
  const release = cause === 'reload' ? request.release : current;
  if (cause !== 'reload' && worker !== undefined) {
    step.emit('worker-replacing', { worker, cause, detail });
  }
  step.disarm({ type: 'start-due', slot });
  const candidate = fork(step, slot, release);
  step.set({ replacement: { ...request, release, phase: 'booting', candidate, checkId: 0 } });
}

function beginCanary(step: Step, candidacy: Candidacy): void {
  // Only new code has to prove itself.
  const isNew = candidacy.cause === 'reload' && step.state.reload?.outcome === 'completed';
  if (!isNew) return takeOver(step, candidacy);
  step.set({ replacement: { ...candidacy, phase: 'canary' } });
  step.arm({ type: 'canary-over', worker: candidacy.candidate }, step.options.reload.canaryMs);
}

function endCanary(step: Step, candidacy: Candidacy): void {
  const worker = step.worker(candidacy.candidate);
  if (worker?.state === 'ready' && !worker.unproven) return check(step, candidacy);
  step.set({ replacement: { ...candidacy, phase: 'proving' } });
}

function check(step: Step, candidacy: Candidacy): void {
  const checkId = step.state.checks + 1;
  const worker = { id: candidacy.candidate };
  step.set({ checks: checkId, replacement: { ...candidacy, phase: 'checking', checkId } });
  step.send(worker, { type: 'check', id: checkId });
  step.armFor(worker, 'check-overdue', CHECK_TIMEOUT_MS);
}

function judge(
  step: Step,
  candidacy: Candidacy,
  { id, healthy, detail }: Extract<CandidateEvent, { type: 'checked' }>,
): void {
  if (id !== candidacy.checkId) return;
  step.disarm({ type: 'check-overdue', worker: candidacy.candidate });
  if (healthy) return takeOver(step, candidacy);
  const reason = `its health check failed: ${detail ?? 'no reason given'}`;
  fail(step, candidacy, { reason });
}

function timeOut(step: Step, candidacy: Candidacy): void {
  const reason = `its health check took longer than ${CHECK_TIMEOUT_MS} ms`;
  fail(step, candidacy, { reason });
}

/** The candidate takes the place of the old worker, which drains. */
function takeOver(step: Step, candidacy: Candidacy): void {
  const { slot, cause, detail, release, snapshotTo, candidate } = candidacy;
  const { worker, failures } = step.state.slots[slot]!;
  const predecessor = worker === undefined ? undefined : step.worker(worker);
  step.set({ replacement: undefined });
  step.setSlot(slot, {
    worker: candidate,
    release,
    // The failures of the other code say nothing of this one.
    failures: cause === 'reload' ? NO_FAILURES : failures,
  });
  const request = { slot, cause, detail, release };
  step.askers.tookOver(step, request);
  if (predecessor === undefined || predecessor.state === 'draining') {
    return concluded(step, request, null);
  }
  const handingOver: HandingOver = {
    ...request,
    phase: 'handing-over',
    predecessor: predecessor.id,
  };
  step.set({ replacement: handingOver });
  retire(step, predecessor, cause, undefined, snapshotTo);
  if (step.askers.letsGo(step, request)) end(step, handingOver, null);
}

function fail(
  step: Step,
  { slot, cause, detail, release, candidate }: Candidacy,
  { reason }: { readonly reason: string },
): void {
  const worker = step.worker(candidate);
  step.set({ replacement: undefined });
  if (worker !== undefined && worker.state !== 'draining') retire(step, worker, cause);
  const wanted = isWanted(step.state, slot);
  if (wanted && step.state.slots[slot]!.worker === undefined) scheduleRestart(step, slot);
  concluded(step, { slot, cause, detail, release }, wanted ? reason : null);
}

function end(step: Step, replacement: HandingOver, failure: string | null): void {
  step.set({ replacement: undefined });
  concluded(step, replacement, failure);
}

/** It is over: the old worker has left, or it stays, for the reason given. */
function concluded(step: Step, request: ReplacementRequest, failure: string | null): void {
  step.askers.concluded(step, request, failure);
  beginNext(step);
}
