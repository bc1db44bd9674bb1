import type { ClusterEvent } from '../input.js';
import { type ClusterState, isWanted, type PendingRequest, wantedSlots } from '../cluster-state.js';
import type { Answer } from '../effect.js';
import { scale } from '../scaling.js';
import type { Step } from '../step.js';
import { answerRequests, restarted, shuttingDown } from './answers.js';
import { reload } from './reload.js';
import { isRequested, noLongerAwait, requestReplacement, warnNotReplaced } from './replacement.js';

type Request = ClusterEvent & { readonly type: PendingRequest['for'] };
type RestartEvent = Request & { readonly type: 'restart' };

/** Records a request to reload, scale or restart. Each request gets one answer. */
export function request(step: Step, event: Request): void {
  const { requester, type } = event;
  const slot = 'slot' in event ? event.slot : undefined;
  const refusal = refusalOf(step.state, event, slot);
  if (refusal !== undefined) return step.do({ type: 'answer', requester, answer: refusal });
  const { pendingRequests } = step.state;
  step.set({ pendingRequests: [...pendingRequests, { for: type, slot, requester }] });
  if (event.type === 'reload') reload(step, event.reason);
  else if (event.type === 'scale') return scale(step, event);
  else restart(step, event);
  // If the requester is already draining for its request, the request must not wait for that exit.
  if (requester.by === 'worker') noLongerAwait(step, requester.slot, requester.worker);
}

/** Called after each event: answers the restarts that have ended or whose slot is gone. */
export function settleRestarts(step: Step): void {
  const slots = new Set(
    step.state.pendingRequests.flatMap((each) => (each.for === 'restart' ? each.slot! : [])),
  );
  for (const slot of slots) {
    if (isRestarting(step.state, slot)) continue;
    const failure = step.ended?.failure ?? null;
    const reason = isWanted(step.state, slot) ? failure : 'its slot was removed by a scale-down';
    answerRequests(step, restarted(slot, reason), (each) => each.slot === slot);
    if (reason === null || reason !== failure) continue;
    warnNotReplaced(step, slot, `was not replaced (cause=restart): ${failure}`);
  }
}

/**
 * Replaces the worker of one slot with a new worker of the same release. Further requests during a
 * restart get that restart's answer. If the slot already waits for a replacement with another
 * cause, that replacement runs first.
 */
function restart(step: Step, { slot, reason }: RestartEvent): void {
  if (isRestarting(step.state, slot)) return;
  const { release } = step.state.slots[slot]!;
  requestReplacement(step, { slot, release, cause: 'restart', detail: reason });
}

function refusalOf(state: ClusterState, event: Request, slot?: number): Answer | undefined {
  if (state.shutdown !== undefined) return shuttingDown(state, event.type, slot);
  if (event.type === 'scale' && event.error !== undefined) {
    return { type: 'scale-refused', error: event.error };
  }
  if (slot === undefined || isWanted(state, slot)) return undefined;
  const indexes = wantedSlots(state).map(({ index }) => index);
  return restarted(slot, `slot ${slot} does not exist: the slots are ${indexes.join(', ')}`);
}

function isRestarting(state: ClusterState, slot: number): boolean {
  return isRequested(state, (each) => each.cause === 'restart' && each.slot === slot);
}
