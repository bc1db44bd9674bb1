import type { ClusterEvent } from './cluster-event.js';
import { type ClusterState, type Release, type Timer, WorkerMap } from './cluster-state.js';
import type { Effect } from './effect.js';
import { NO_LEADER, onLeaseDue, settleLeadership } from './leadership.js';
import { beat } from './worker/liveness.js';
import { endObservation, programFound, settleReload } from './replace/reload.js';
import { beginNextReplacement } from './replace/replacement.js';
import { request, settleRestarts } from './replace/requests.js';
import { maintain, settleUpkeep } from './replace/upkeep.js';
import { startWhereNeeded } from './worker/restart-slot.js';
import { newSlot, settleScaling } from './scaling.js';
import { releaseSockets, settleShutdown, stop, sendReleased } from './shutdown.js';
import { type Settings, Step } from './step.js';
import { handleWorkerEvent } from './worker/worker-life.js';
import { settleVerification } from './worker/verification.js';
import { startSlot, wantedSlots } from './worker/workers.js';

/** The new state of the cluster, and the effects to carry out. */
export interface Transition {
  readonly state: ClusterState;
  /** The effects, in the order in which to carry them out. */
  readonly effects: readonly Effect[];
}

/**
 * Applies an event to a cluster. Pure: no process, no timer, no clock.
 *
 * @param now monotonic ms.
 */
export function transition(
  state: ClusterState,
  event: ClusterEvent,
  now: number,
  settings: Settings,
): Transition {
  const step = new Step(state, now, settings);
  handle(step, event);
  settle(step);
  return { state: step.state, effects: step.effects };
}

/** The state of a cluster that has not started yet. */
export function newCluster(
  workers: number,
  release: Release,
  now: number,
  seed: number,
): ClusterState {
  return {
    desired: workers,
    slots: Array.from({ length: workers }, (_, index) => newSlot(index, release)),
    workers: new WorkerMap(),
    forks: 0,
    timers: new Map(),
    release,
    previous: undefined,
    strikes: 0,
    endings: [],
    reload: undefined,
    lastReload: release.generation,
    reloads: { completed: 0, aborted: 0, reverted: 0 },
    pendingRequests: [],
    replacement: undefined,
    replacementsWaiting: [],
    restartedAt: [],
    bootErrors: { generation: release.generation, printer: undefined, reported: [] },
    verified: [],
    leadership: NO_LEADER,
    served: undefined,
    everReady: false,
    minReady: 1,
    warnedOfLimit: false,
    pings: 0,
    lastBeatAt: now,
    shutdown: undefined,
    ended: false,
    seed,
  };
}

function handle(step: Step, event: ClusterEvent): void {
  switch (event.type) {
    case 'begin':
      for (const slot of wantedSlots(step.state)) startSlot(step, slot);
      return;
    case 'worker': {
      const worker = step.worker(event.worker);
      if (worker !== undefined) handleWorkerEvent(step, worker, event.event);
      return;
    }
    case 'due':
      return onDue(step, event.timer);
    case 'heartbeat-due':
      return beat(step, event.eventLoopUtilization);
    case 'upkeep-due':
      return maintain(step, event.readings);
    case 'reload':
    case 'scale':
    case 'restart':
      return request(step, event);
    case 'program-found':
      return programFound(step, event.program);
    case 'stop':
      return stop(step, event);
    case 'acceptors-closed':
      return sendReleased(step);
  }
}

/** Called after each event: each function looks at the new state, and takes its next step. */
function settle(step: Step): void {
  settleReload(step);
  settleRestarts(step);
  settleUpkeep(step);
  settleVerification(step);
  beginNextReplacement(step);
  settleScaling(step);
  settleShutdown(step);
  settleLeadership(step);
}

function onDue(step: Step, timer: Timer): void {
  // A timer may fire although it was disarmed just before.
  if (!step.fired(timer)) return;
  if ('worker' in timer) {
    const worker = step.worker(timer.worker);
    if (worker !== undefined) handleWorkerEvent(step, worker, timer);
    return;
  }
  switch (timer.type) {
    case 'start-due':
      return startWhereNeeded(step, timer.slot);
    case 'observation-over':
      return endObservation(step);
    case 'lame-duck-over':
      return releaseSockets(step);
    case 'lease-due':
      return onLeaseDue(step);
  }
}
