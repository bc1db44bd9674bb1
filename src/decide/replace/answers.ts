import { type ReplaceCause, SHUTTING_DOWN } from '../../contract/snapshot/types.js';
import { type ClusterState, type PendingRequest, slotsOfOtherReleases } from '../cluster-state.js';
import type { Answer } from '../effect.js';
import type { Step } from '../step.js';

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

/** Answers all requests when the cluster shuts down. */
export function cancelRequests(step: Step): void {
  for (const each of step.state.pendingRequests) {
    answerRequests(step, shuttingDown(step.state, each.for, each.slot), (one) => one === each);
  }
}

/**
 * Called before the old worker of a slot drains. If that worker asked for the reload or the restart,
 * it gets the answer now, because it might not receive the answer while it drains.
 */
export function answerBeforeDrain(step: Step, cause: ReplaceCause, slot: number): void {
  if (cause === 'restart') {
    const isOwn = (each: PendingRequest) => each.slot === slot && isByWorkerOf(slot, each);
    return answerRequests(step, restarted(slot, null), isOwn);
  }
  const { reload: underWay } = step.state;
  if (cause !== 'reload' || underWay?.release === undefined) return;
  if (slotsOfOtherReleases(step.state, underWay.release).length > 0) return;
  const { outcome, generation, reason } = underWay;
  const answer = { type: 'reloaded', result: { outcome, generation, reason } } as const;
  answerRequests(step, answer, (each) => each.for === 'reload' && each.requester.by === 'worker');
}

export function awaitsReload({ pendingRequests }: ClusterState, slot: number): boolean {
  return pendingRequests.some((each) => each.for === 'reload' && isByWorkerOf(slot, each));
}

/** Whether a worker of the slot waits for an answer. If so, the answer must not wait for the worker's exit. */
export function awaitsAnswer({ pendingRequests }: ClusterState, slot: number): boolean {
  return pendingRequests.some((each) => each.for !== 'scale' && isByWorkerOf(slot, each));
}

export function shuttingDown(
  { release: { generation } }: ClusterState,
  what: PendingRequest['for'],
  slot: number | undefined,
): Answer {
  if (what === 'scale') return { type: 'scaled' };
  if (what === 'restart') return restarted(slot!, SHUTTING_DOWN);
  const result = { outcome: 'aborted', generation, reason: SHUTTING_DOWN } as const;
  return { type: 'reloaded', result };
}

export function restarted(slot: number, reason: string | null): Answer {
  const outcome = reason === null ? 'completed' : 'aborted';
  return { type: 'restarted', result: { outcome, slot, reason } };
}

function isByWorkerOf(slot: number, { requester }: PendingRequest): boolean {
  return requester.by === 'worker' && requester.slot === slot;
}
