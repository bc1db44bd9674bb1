import type { ClusterEvent } from './input.js';
import { contendersOf, isWanted, type Requester, type Slot, wantedSlots } from './cluster-state.js';
import { answerRequests } from './replace/answers.js';
import { loseCandidate } from './replace/replacement.js';
import { NO_FAILURES } from './policies/failure.policy.js';
import type { Step } from './step.js';
import { retire, startSlot } from './worker/worker-actions.js';

/**
 * Starts workers for new slots, and retires the workers of slots that are no longer wanted.
 * {@link settleScaling} answers the requester.
 */
export function scale(
  step: Step,
  { workers, reason }: ClusterEvent & { readonly type: 'scale' },
): void {
  const { desired } = step.state;
  if (workers === desired) return;
  step.emit('scaling', { from: desired, to: workers, reason });
  addSlots(step, workers);
  step.set({ desired: workers });
  for (const slot of wantedSlots(step.state).slice(desired)) startSlot(step, slot);
  for (const slot of step.state.slots.slice(workers, desired)) dismiss(step, slot);
}

/** Called after each event: answers once the new number is reached, or new workers have failed. */
export function settleScaling(step: Step): void {
  const { pendingRequests, workers } = step.state;
  if (!pendingRequests.some((each) => each.for === 'scale')) return;
  if (wantedSlots(step.state).some((slot) => isComingUp(step, slot))) return;
  const surplus = [...workers.values()].some(({ slot }) => !isWanted(step.state, slot));
  const isMet = ({ by }: Requester): boolean => by === 'worker' || !surplus;
  answerRequests(step, { type: 'scaled' }, (each) => each.for === 'scale' && isMet(each.requester));
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
    replacement: undefined,
  };
}

/** Adds missing slots. Slots removed by scaling down are reused, so that their counts continue. */
function addSlots(step: Step, workers: number): void {
  const { slots, release, desired } = step.state;
  const missing = Array.from({ length: Math.max(0, workers - slots.length) }, (_, i) =>
    newSlot(slots.length + i, release),
  );
  const current = slots.map((slot) => (slot.index < desired ? slot : { ...slot, release }));
  step.set({ slots: [...current, ...missing] });
}

function dismiss(step: Step, slot: Slot): void {
  const { index } = slot;
  const { replacementsWaiting } = step.state;
  step.set({ replacementsWaiting: replacementsWaiting.filter((each) => each.slot !== index) });
  step.disarm({ type: 'start-due', slot: index });
  for (const worker of contendersOf(step.state, slot)) {
    if (worker.state === 'draining') continue;
    retire(step, worker, 'scale');
    loseCandidate(step, worker, 'its slot was removed by a scale-down');
  }
}

/** Whether a slot has a starting worker and no ready worker. A slot with neither has failed. */
function isComingUp({ state }: Step, slot: Slot): boolean {
  const states = contendersOf(state, slot).map((each) => each.state);
  return states.includes('starting') && !states.includes('ready');
}
