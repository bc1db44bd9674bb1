import { type Scaling, SCALINGS } from '../../contract/snapshot/index.js';
import type { ClusterEvent } from './cluster-event.js';
import type { Requester, Slot } from './cluster-state.js';
import { answerRequests } from './replace/answers.js';
import { retire } from './worker/retire.js';
import { loseCandidate } from './replace/replacement.js';
import { NO_FAILURES } from './policies/restart.policy.js';
import type { Step } from './step.js';
import { contendersOf, isServed, isWanted, slotsOf, startSlot } from './worker/workers.js';

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
  const surplus = slotsOf(step.state, 'serving').slice(workers);
  const added = addSlots(step, Math.max(0, workers - desired));
  step.set({ desired: workers });
  for (const index of added) startSlot(step, step.state.slots[index]!);
  for (const { index } of surplus) dismiss(step, index);
}

/** Called after each event: answers once the new number is reached, or new workers have failed. */
export function settleScaling(step: Step): void {
  const { pendingRequests, workers } = step.state;
  if (!pendingRequests.some((each) => each.for === 'scale')) return;
  if (slotsOf(step.state, 'serving').some((slot) => isComingUp(step, slot))) return;
  const surplus = workers.values().some(({ slot }) => !isWanted(step.state, slot));
  const isMet = ({ by }: Requester): boolean => by === 'worker' || !surplus;
  answerRequests(step, { type: 'scaled' }, (each) => each.for === 'scale' && isMet(each.requester));
}

/** Answers all scale requests, because the cluster shuts down. */
export function cancelScaling(step: Step): void {
  answerRequests(step, { type: 'scaled' }, (each) => each.for === 'scale');
}

export function newSlot(
  index: number,
  release: Slot['release'],
  role: Slot['role'] = 'serving',
): Slot {
  return {
    index,
    role,
    worker: undefined,
    release,
    failures: NO_FAILURES,
    restarts: {},
    lastExit: null,
    abortedRequests: 0,
    noReplacementBefore: 0,
  };
}

/** Adds slots that serve: first those that were dismissed, because their counts go on. */
function addSlots(step: Step, count: number): readonly number[] {
  const { slots, release } = step.state;
  const unused = slotsOf(step.state, 'dismissed').map(({ index }) => index);
  const indexes = [...unused, ...Array.from({ length: count }, (_, i) => slots.length + i)];
  const added = indexes.slice(0, count);
  const fresh = added.filter((index) => index >= slots.length);
  step.set({ slots: [...slots, ...fresh.map((index) => newSlot(index, release))] });
  for (const index of added) step.setSlot(index, { role: 'serving', release });
  return added;
}

/** Retires the workers of a slot that is not wanted any more. */
export function dismiss(step: Step, index: number): void {
  const { replacementsWaiting } = step.state;
  const contenders = contendersOf(step.state, step.state.slots[index]!);
  step.setSlot(index, { role: 'dismissed' });
  step.set({ replacementsWaiting: replacementsWaiting.filter(({ slot }) => slot !== index) });
  step.disarm({ type: 'start-due', slot: index });
  for (const worker of contenders) {
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
