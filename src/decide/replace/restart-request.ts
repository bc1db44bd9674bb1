import { SHUTTING_DOWN } from '../../contract/snapshot/index.js';
import type { ClusterEvent } from '../cluster-event.js';
import type { ClusterState, PendingRequest } from '../cluster-state.js';
import { answerRequests, restarted } from './answers.js';
import { isRequested, noLongerAwait, requestReplacement, warnNotReplaced } from './replacement.js';
import type { Step } from '../step.js';
import { isWanted, wantedSlots } from '../worker/workers.js';

/**
 * Replaces the worker of one slot by a new one of the same release. Further requests during a
 * restart get the answer of that restart. If a replacement for another cause already waits for its
 * turn, that replacement runs first.
 */
export function restart(
  step: Step,
  { slot, reason, requester }: Extract<ClusterEvent, { type: 'restart' }>,
): void {
  const { state } = step;
  const refusal = refusalOf(state, slot);
  if (refusal !== undefined) {
    return step.do({ type: 'answer', requester, answer: restarted(slot, refusal) });
  }
  const request = { for: 'restart', slot, requester } as const;
  step.set({ pendingRequests: [...state.pendingRequests, request] });
  if (!isRestarting(state, slot)) {
    const { release } = state.slots[slot]!;
    const wish = { cause: 'restart', detail: reason } as const;
    requestReplacement(step, { slot, release, ...wish });
  }
  // If the requester already drains for this restart, the restart must not wait for the requester's exit.
  if (requester.by === 'worker') noLongerAwait(step, { id: requester.worker });
}

/** Called after each event: answers the requests whose restart has ended or whose slot is gone. */
export function settleRestarts(step: Step): void {
  for (const slot of awaitedSlots(step)) if (!isRestarting(step.state, slot)) conclude(step, slot);
}

export function cancelRestarts(step: Step): void {
  for (const slot of awaitedSlots(step)) answer(step, slot, SHUTTING_DOWN);
}

function refusalOf(state: ClusterState, slot: number): string | undefined {
  if (state.shutdown !== undefined) return SHUTTING_DOWN;
  if (isWanted(state, slot)) return undefined;
  const indexes = wantedSlots(state).map(({ index }) => index);
  return `there is no slot ${slot}: slots are ${indexes.join(', ')}`;
}

function conclude(step: Step, slot: number): void {
  if (!isWanted(step.state, slot)) return answer(step, slot, 'its slot was scaled away');
  const failure = step.ended?.failure ?? null;
  answer(step, slot, failure);
  if (failure === null) return;
  warnNotReplaced(step, slot, `is not replaced (cause=restart): ${failure}`);
}

function awaitedSlots({ state }: Step): ReadonlySet<number> {
  return new Set(
    state.pendingRequests.flatMap((each) => (each.for === 'restart' ? each.slot! : [])),
  );
}

function answer(step: Step, slot: number, reason: string | null): void {
  const isOfSlot = (each: PendingRequest) => each.for === 'restart' && each.slot === slot;
  answerRequests(step, restarted(slot, reason), isOfSlot);
}

function isRestarting(state: ClusterState, slot: number): boolean {
  return isRequested(state, (each) => each.cause === 'restart' && each.slot === slot);
}
