import type { FailureCause } from '../../contract/snapshot/index.js';
import { restartDelayMs, TOGETHER_MS } from '../policies/restart.policy.js';
import type { Step } from '../step.js';
import { candidateOf, isWanted, startSlot } from './workers.js';

/** Starts a new worker in the slot, after a delay that depends on the slot's failures. */
export function scheduleRestart(step: Step, index: number): void {
  const { now } = step;
  const together = step.state.restartedAt.filter((at) => now - at < TOGETHER_MS);
  step.set({ restartedAt: [...together, now] });
  const { failures } = step.state.slots[index]!;
  const delayMs = restartDelayMs(failures, step.random(), together.length);
  const { inARow, degraded } = failures;
  step.emit('worker-restarting', { slot: index, delayMs, failures: inARow, degraded });
  step.arm({ type: 'start-due', slot: index }, delayMs);
}

/** Starts the slot's next worker, if the slot is still wanted and empty. */
export function startWhereNeeded(step: Step, index: number): void {
  const { state } = step;
  const slot = state.slots[index]!;
  if (state.shutdown !== undefined || !isWanted(state, index)) return;
  if (slot.worker === undefined && candidateOf(state, index) === undefined) startSlot(step, slot);
}

export function countRestart(step: Step, index: number, cause: FailureCause): void {
  const { restarts } = step.state.slots[index]!;
  step.setSlot(index, { restarts: { ...restarts, [cause]: (restarts[cause] ?? 0) + 1 } });
}
