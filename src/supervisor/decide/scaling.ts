import { type Scaling, SCALINGS } from '../../contract/snapshot/index.js';
import type { ClusterEvent } from './cluster-event.js';
import type { Requester, Slot } from './cluster-state.js';
import { answerRequests } from './replace/answers.js';
import { retire } from './worker/retire.js';
import { loseCandidate } from './replace/replacement.js';
import { NO_FAILURES } from './policies/restart.policy.js';
import type { Step } from './step.js';
import { contendersOf, isServed, startSlot, wantedSlots } from './worker/workers.js';

export const NO_SCALINGS = Object.fromEntries(SCALINGS.map((each) => [each, 0])) as Record<
  Scaling,
  number
>;

/** Changes the number of workers as somebody asked. {@link settleScaling} answers the requester. */
export function scale(
  step: Step,
  { workers: wanted, reason, requester, error }: ClusterEvent & { readonly type: 'scale' },
): void {
  const { desired, elastic, shutdown, pendingRequests } = step.state;
  if (shutdown !== undefined) {
    return step.do({ type: 'answer', requester, answer: { type: 'scaled' } });
  }
  if (error !== undefined) {
    return step.do({ type: 'answer', requester, answer: { type: 'scale-refused', error } });
  }
  step.set({ pendingRequests: [...pendingRequests, { for: 'scale', requester }] });
  const { min = 1, max = desired } = elastic ?? {};
  const floor = wanted === 'auto' ? undefined : wanted;
  if (elastic !== undefined) step.set({ elastic: { ...elastic, floor } });
  const workers = Math.max(min, floor ?? Math.min(desired, max));
  resize(step, workers, workers > desired ? 'up manual' : 'down manual', reason);
}

/** Starts workers for new slots, and retires the workers of slots that are not wanted any more. */
export function resize(step: Step, workers: number, scaling: Scaling, reason: string): void {
  const { desired, scalings } = step.state;
  if (workers === desired) return;
  step.emit('scaling', { from: desired, to: workers, reason });
  step.set({ scalings: { ...scalings, [scaling]: scalings[scaling] + 1 } });
  setDesired(step, workers);
  for (const { index } of wantedSlots(step.state).slice(desired)) {
    const slot = step.state.slots[index]!;
    if (slot.worker === undefined) startSlot(step, slot);
  }
  for (const { index } of step.state.slots.slice(workers, desired)) dismiss(step, index);
}

/** Called after each event: answers once the new number is reached, or new workers have failed. */
export function settleScaling(step: Step): void {
  const { pendingRequests, workers, desired } = step.state;
  if (!pendingRequests.some((each) => each.for === 'scale')) return;
  if (wantedSlots(step.state).some((slot) => isComingUp(step, slot))) return;
  const surplus = workers.values().some(({ slot }) => slot >= desired);
  const isMet = ({ by }: Requester): boolean => by === 'worker' || !surplus;
  answerRequests(step, { type: 'scaled' }, (each) => each.for === 'scale' && isMet(each.requester));
}

/** Answers all scale requests, because the cluster shuts down. */
export function cancelScaling(step: Step): void {
  answerRequests(step, { type: 'scaled' }, (each) => each.for === 'scale');
}

export function newSlot(index: number, release: Slot['release']): Slot {
  return {
    index,
    worker: undefined,
    release,
    failures: NO_FAILURES,
    restarts: {},
    lastExit: null,
    abortedRequests: 0,
    noReplacementBefore: 0,
  };
}

function setDesired(step: Step, desired: number): void {
  const { slots, release, desired: before } = step.state;
  const added = Array.from({ length: Math.max(0, desired - slots.length) }, (_, i) =>
    newSlot(slots.length + i, release),
  );
  const all = [...slots, ...added].map((slot) =>
    slot.index >= before && slot.index < desired ? { ...slot, release } : slot,
  );
  step.set({ desired, slots: all });
}

/** Retires the workers of a slot that is not wanted any more. */
function dismiss(step: Step, index: number): void {
  const { replacementsWaiting } = step.state;
  step.set({ replacementsWaiting: replacementsWaiting.filter(({ slot }) => slot !== index) });
  step.disarm({ type: 'start-due', slot: index });
  for (const worker of contendersOf(step.state, step.state.slots[index]!)) {
    if (worker.state === 'draining') continue;
    retire(step, worker, 'scale');
    loseCandidate(step, worker, 'its slot was scaled away');
  }
}

/** Whether a slot has a starting worker and no ready worker. A slot with neither has failed. */
function isComingUp({ state }: Step, slot: Slot): boolean {
  if (isServed(state, slot)) return false;
  return contendersOf(state, slot).some(({ state: each }) => each === 'starting');
}
