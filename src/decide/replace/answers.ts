import type { ReloadResult, ReplaceCause } from '../../contract/snapshot/index.js';
import type { ClusterState, PendingRequest, ReloadUnderWay } from '../cluster-state.js';
import type { Answer } from '../effect.js';
import type { Step } from '../step.js';
import { slotsOfOtherReleases } from '../worker/workers.js';

/** Answers the requests that `which` selects, and removes them. */
export function answerRequests(
  step: Step,
  answer: Answer,
  which: (request: PendingRequest) => boolean,
): void {
  const { pendingRequests } = step.state;
  step.set({ pendingRequests: pendingRequests.filter((each) => !which(each)) });
  for (const { requester } of pendingRequests.filter(which)) {
    step.do({ type: 'answer', requester, answer });
  }
}

/**
 * Called before the old worker of a slot drains. If that worker asked for the reload or the restart,
 * it gets the answer now, because it might not receive the answer while it drains.
 */
export function answerBeforeDrain(step: Step, cause: ReplaceCause, slot: number): void {
  if (cause === 'restart') {
    const isOwn = (each: PendingRequest): boolean =>
      each.for === 'restart' && each.slot === slot && isByWorkerOf(slot, each);
    return answerRequests(step, restarted(slot, null), isOwn);
  }
  const { reload } = step.state;
  if (cause !== 'reload' || reload?.release === undefined) return;
  if (slotsOfOtherReleases(step.state, reload.release).length > 0) return;
  const answer = { type: 'reloaded', result: resultOf(reload) } as const;
  answerRequests(step, answer, (each) => each.for === 'reload' && each.requester.by === 'worker');
}

export function awaitsReload({ pendingRequests }: ClusterState, slot: number): boolean {
  return pendingRequests.some((each) => each.for === 'reload' && isByWorkerOf(slot, each));
}

/** Whether a worker of the slot waits for an answer. If so, the request must not wait for its exit. */
export function awaitsAnswer({ pendingRequests }: ClusterState, slot: number): boolean {
  return pendingRequests.some((each) => each.for !== 'scale' && isByWorkerOf(slot, each));
}

export function resultOf({ outcome, generation, reason }: ReloadUnderWay): ReloadResult {
  return { outcome, generation, reason };
}

export function restarted(slot: number, reason: string | null): Answer {
  const outcome = reason === null ? 'completed' : 'aborted';
  return { type: 'restarted', result: { outcome, slot, reason } };
}

function isByWorkerOf(slot: number, { requester }: PendingRequest): boolean {
  return requester.by === 'worker' && requester.slot === slot;
}
