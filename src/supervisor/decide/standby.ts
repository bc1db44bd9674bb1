import { judgeMemory } from './policies/memory.policy.js';
import { recoveryMs } from './policies/restart.policy.js';
import type { WorkerEventOf } from './cluster-event.js';
import type {
  ClusterState,
  DrainingWorker,
  ReadyWorker,
  Slot,
  StandbyWorker,
  StartingWorker,
} from './cluster-state.js';
import { onCandidateReady } from './replace/replacement.js';
import { dismiss } from './scaling.js';
import { keyOf, type Step } from './step.js';
import { forgetBootErrors } from './worker/boot-errors.js';
import { candidateOf, contendersOf, isServed, slotsOf, startSlot } from './worker/workers.js';

/**
 * Spares. A spare is a worker that has started its app and waits to be told to listen. It has a slot
 * of its own, so its identity never changes. When a slot that serves has no worker, the two slots
 * exchange their roles: the spare is told to listen, and the other slot's next worker is the spare.
 *
 * 1. A spare is started once every slot that serves has a ready worker.
 * 2. `letListen` lets a worker listen, or makes it a spare.
 * 3. `settleStandby` gives each slot without a worker a spare of the same release.
 */
export function settleStandby(step: Step): void {
  const { everReady, shutdown, served } = step.state;
  if (shutdown !== undefined || !everReady || slotsOf(step.state, 'standby').length === 0) return;
  if (served?.url === null) return giveUpSpares(step, 'the app has no HTTP server');
  for (const slot of slotsOf(step.state, 'serving')) {
    const spare = isComing(step.state, slot) ? undefined : spareFor(step.state, slot);
    if (spare !== undefined) promote(step, slot, spare);
  }
  if (!slotsOf(step.state, 'serving').every((slot) => isServed(step.state, slot))) return;
  for (const slot of slotsOf(step.state, 'standby')) {
    if (isEmpty(step.state, slot)) startSlot(step, slot);
  }
}

/** The app has started, and the worker asks to listen. */
export function letListen(
  step: Step,
  worker: StartingWorker | DrainingWorker,
  { residentBytes }: WorkerEventOf<'listen-request'>,
): void {
  if (step.slotOf(worker).role !== 'standby') {
    if (worker.state === 'starting') step.change(worker, { mayListen: true });
    step.do({ type: 'grant', worker: worker.id });
  } else if (worker.state === 'starting' && worker.condemned === undefined) {
    standBy(step, worker, residentBytes);
  }
}

/** Ends all spares if a worker has become ready although it was not told to listen. */
export function refuseUnasked(step: Step, worker: ReadyWorker): void {
  if (step.slotOf(worker).role !== 'standby') return;
  giveUpSpares(step, 'createApp() has already called listen()');
}

function standBy(step: Step, worker: StartingWorker, residentBytes: number): void {
  const { now, options } = step;
  forgetBootErrors(step);
  step.disarmAllOf(worker.id);
  const bornTooLarge = judgeMemory(residentBytes, options.memory) !== 'fine';
  const spare: StandbyWorker = {
    ...worker,
    state: 'standby',
    readyAt: now,
    error: null,
    bornTooLarge,
  };
  step.enter(spare);
  step.armFor(worker, 'recovered', recoveryMs(options.restart));
  step.emit('worker-standby', { worker: worker.id, bootMs: now - worker.startedAt });
  onCandidateReady(step, spare);
}

/** The spare serves from now on, and the next worker of the other slot is the spare. */
function promote(step: Step, { index }: Slot, spare: StandbyWorker): void {
  const { readyTimeoutMs, heartbeat } = step.options;
  step.setSlot(index, { role: 'standby' });
  step.setSlot(spare.slot, { role: 'serving' });
  step.disarmAllOf(spare.id);
  step.enter({ ...spare, state: 'starting', mayListen: true, promotedAt: step.now });
  // A starting worker is not pinged, but this one only has to listen.
  if (!spare.debugged) {
    step.arm(
      { type: 'ready-overdue', worker: spare.id },
      Math.min(readyTimeoutMs, heartbeat.timeoutMs),
    );
  }
  step.emit('worker-promoted', { worker: spare.id, slot: index });
  step.do({ type: 'grant', worker: spare.id });
}

/** A spare that is well and runs the slot's release. Its threads are known to load their code. */
function spareFor(state: ClusterState, { release }: Slot): StandbyWorker | undefined {
  const isFit = (spare: StandbyWorker): boolean =>
    spare.generation === release.generation &&
    state.verification.proven.includes(spare.generation) &&
    spare.block === undefined &&
    spare.trial === undefined &&
    spare.condemned === undefined;
  return slotsOf(state, 'standby')
    .map(({ worker }) => state.workers.get(worker ?? 0))
    .find((each): each is StandbyWorker => each?.state === 'standby' && isFit(each));
}

/** Whether the slot has a worker that is ready, or only has to listen. */
function isComing(state: ClusterState, slot: Slot): boolean {
  return contendersOf(state, slot).some(
    (worker) => worker.state === 'ready' || (worker.state === 'starting' && worker.mayListen),
  );
}

/** Whether the slot has no worker and nothing that will start one. */
function isEmpty(state: ClusterState, { index, worker }: Slot): boolean {
  const isDue = state.timers.has(keyOf({ type: 'start-due', slot: index }));
  return worker === undefined && candidateOf(state, index) === undefined && !isDue;
}

/** Ends all spares, because the app cannot have any. */
function giveUpSpares(step: Step, reason: string): void {
  step.emit('warning', {
    message: `there is no spare (workers.standby): ${reason}; set standby to 0`,
  });
  for (const { index } of slotsOf(step.state, 'standby')) dismiss(step, index);
}
