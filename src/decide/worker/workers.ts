import type { FailureCause } from '../../contract/snapshot/index.js';
import { mayPrintBootError } from './boot-errors.js';
import type { ClusterState, Release, Slot, Worker, WorkerId } from '../cluster-state.js';
import type { Step } from '../step.js';

/** Starts a process for a slot. The caller makes the new worker the slot's worker or its candidate. */
export function fork(step: Step, slot: number, release: Release): WorkerId {
  const { readyTimeoutMs } = step.options;
  const { mayBeDebugged } = step.settings;
  const id = step.state.forks + 1;
  const printsBootError = mayPrintBootError(step, id, release.generation);
  const jitter = step.random();
  step.set({ forks: id });
  step.enter({
    state: 'starting',
    id,
    slot,
    generation: release.generation,
    startedAt: step.now,
    debugged: mayBeDebugged,
    ping: undefined,
    block: undefined,
    error: null,
    requests: [],
    fatal: false,
    failure: undefined,
    jitter,
    follows: false,
    lapsed: false,
  });
  step.do({
    type: 'fork',
    worker: id,
    slot,
    release,
    workers: step.state.desired,
    printsBootError,
  });
  if (!mayBeDebugged) step.arm({ type: 'ready-overdue', worker: id }, readyTimeoutMs);
  return id;
}

export function startSlot(step: Step, { index, release }: Slot): void {
  step.disarm({ type: 'start-due', slot: index });
  step.setSlot(index, { worker: fork(step, index, release) });
}

/** Removes a worker from its slot, so that the slot may get another worker. */
export function clearSlot(step: Step, worker: Worker): void {
  const { index, worker: current } = step.slotOf(worker);
  if (current === worker.id) step.setSlot(index, { worker: undefined });
}

/** Kills a worker. Its exit does not show the reason, so the reason is noted. */
export function killFailed(step: Step, worker: Worker, cause: FailureCause, detail: string): void {
  if (worker.failure === undefined) step.change(worker, { failure: { cause, detail } });
  step.kill(worker, 'SIGKILL');
}

export function isWanted({ desired }: ClusterState, slot: number): boolean {
  return slot < desired;
}

export function wantedSlots({ slots, desired }: ClusterState): readonly Slot[] {
  return slots.slice(0, desired);
}

/** Slots whose worker runs another release, and empty slots whose next worker would run another release. */
export function slotsOfOtherReleases(
  state: ClusterState,
  { generation }: Release,
): readonly Slot[] {
  return wantedSlots(state).filter(({ worker, release }) => {
    const current = worker === undefined ? undefined : state.workers.get(worker);
    return (current ?? release).generation !== generation;
  });
}

export function candidateOf({ replacement }: ClusterState, slot: number): WorkerId | undefined {
  if (replacement?.slot !== slot || replacement.phase === 'handing-over') return undefined;
  return replacement.candidate;
}

export function contendersOf(state: ClusterState, { index, worker }: Slot): readonly Worker[] {
  const ids = [worker, candidateOf(state, index)];
  return ids.flatMap((id) => (id === undefined ? [] : (state.workers.get(id) ?? [])));
}

export function isServed(state: ClusterState, slot: Slot): boolean {
  return contendersOf(state, slot).some((worker) => worker.state === 'ready');
}

/** Every process of a slot: draining workers, then the slot's worker, then its candidate. */
export function workersOf(state: ClusterState, slot: number): readonly Worker[] {
  const { worker } = state.slots[slot]!;
  const candidate = candidateOf(state, slot);
  const place = ({ id }: Worker) => (id === candidate ? 2 : id === worker ? 1 : 0);
  return state.workers
    .values()
    .filter((each) => each.slot === slot)
    .toSorted((a, b) => place(a) - place(b));
}
