import type { ClusterEvent } from './cluster-event.js';
import { judgeLoad, type LoadHistory, type WorkerLimits } from './policies/elastic.policy.js';
import { resize } from './scaling.js';
import type { Step } from './step.js';
import { isServed, isWanted, slotsOf } from './worker/workers.js';

/** Automatic scaling. */
export interface Elastic extends WorkerLimits {
  /** The number of workers that somebody asked for: there are no fewer. `undefined` = nobody has. */
  readonly floor: number | undefined;
  readonly history: LoadHistory;
}

/** Adds or removes a worker as the load asks for it. Does nothing while workers come, go or change. */
export function adapt(step: Step, { load }: ClusterEvent & { readonly type: 'load-due' }): void {
  const { elastic, desired } = step.state;
  if (elastic === undefined || !isSettled(step)) return;
  const { floor = 0, history: before } = elastic;
  const limits = { min: Math.max(elastic.min, floor), max: Math.max(elastic.max, floor) };
  const { history, verdict } = judgeLoad(before, load, desired, limits, step.now);
  step.set({ elastic: { ...elastic, history } });
  if (verdict !== undefined) resize(step, desired + verdict.by, verdict.scaling, verdict.reason);
}

/** Whether each slot has a ready worker and nothing is under way that changes that. */
function isSettled({ state }: Step): boolean {
  const { shutdown, replacement } = state;
  if (shutdown !== undefined || replacement !== undefined) return false;
  const isLeaving = state.workers.values().some(({ slot }) => !isWanted(state, slot));
  return !isLeaving && slotsOf(state, 'serving').every((slot) => isServed(state, slot));
}
