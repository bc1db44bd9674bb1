import type { ClusterSnapshot, ReplaceCause } from '../../contract/snapshot/index.js';
import { NO_BOOT_ERRORS } from './worker/boot-errors.js';
import type { ClusterEvent } from './cluster-event.js';
import type { ClusterState, Timer } from './cluster-state.js';
import type { Release } from '../processes/release.js';
import type { Effect } from './effect.js';
import { NO_LEADER, onLeaseDue, settleLeadership } from './leadership.js';
import { beat } from './worker/liveness.js';
import {
  endObservation,
  letsSlotGo,
  reload,
  reloadTo,
  slotConcluded,
  slotReloaded,
} from './replace/reload.js';
import { startWhereNeeded } from './restart.js';
import {
  awaitsRestart,
  restart,
  restartConcluded,
  restartTookOver,
} from './replace/restart-request.js';
import { newSlot, scale, scaleTo } from './scaling.js';
import type { ReplacementAskers } from './replace/replacement.js';
import { releaseSockets, stop, tellReleased } from './shutdown.js';
import { type Settings, Step } from './step.js';
import { maintain, replaced, replacementConcluded } from './replace/upkeep.js';
import { live } from './worker/worker-life.js';
import { WorkerMap } from './worker/worker-map.js';
import { startSlot } from './worker/workers.js';

/** What has become of the cluster, and what is to be done. */
export interface Transition {
  readonly state: ClusterState;
  /** In this order. */
  readonly effects: readonly Effect[];
}

const ASKERS: ReplacementAskers = {
  tookOver: (step, request) => BY_CAUSE[request.cause].tookOver(step, request),
  letsGo: (step, { cause, slot }) =>
    (cause === 'reload' && letsSlotGo(step, slot)) || awaitsRestart(step, slot),
  concluded: (step, request, failure) => BY_CAUSE[request.cause].concluded(step, request, failure),
};

const UPKEEP = { tookOver: replaced, concluded: replacementConcluded };

const BY_CAUSE: Readonly<Record<ReplaceCause, Pick<ReplacementAskers, 'tookOver' | 'concluded'>>> =
  {
    reload: {
      tookOver: slotReloaded,
      concluded: (step, { slot }, failure) => slotConcluded(step, slot, failure),
    },
    restart: { tookOver: restartTookOver, concluded: restartConcluded },
    recycle: UPKEEP,
    memory: UPKEEP,
  };

/**
 * What an event makes of a cluster. Pure: no process, no timer, no clock.
 *
 * @param now monotonic ms.
 */
export function transition(
  state: ClusterState,
  event: ClusterEvent,
  now: number,
  settings: Settings,
): Transition {
  const step = new Step(state, now, settings, ASKERS);
  handle(step, event);
  settleLeadership(step);
  return { state: step.state, effects: step.effects };
}

/** A cluster that has not begun. */
export function newCluster(
  workers: number,
  release: Release,
  now: number,
  seed: number,
  minReady: ClusterSnapshot['minReady'] = 1,
): ClusterState {
  return {
    desired: workers,
    slots: Array.from({ length: workers }, (_, index) => newSlot(index, release)),
    workers: new WorkerMap(),
    forks: 0,
    timers: new Map(),
    release,
    previous: undefined,
    reload: undefined,
    lastReload: release.generation,
    reloads: { completed: 0, aborted: 0, reverted: 0 },
    reloadAskers: [],
    scaleAskers: [],
    restartAskers: [],
    replacement: undefined,
    replacementsWaiting: [],
    checks: 0,
    failures: 0,
    restartedAt: [],
    bootErrors: NO_BOOT_ERRORS,
    verification: { proven: [], asked: undefined },
    leadership: NO_LEADER,
    served: undefined,
    everReady: false,
    minReady,
    toldOfLimit: false,
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
      for (const slot of step.state.slots) startSlot(step, slot);
      return;
    case 'worker': {
      const worker = step.worker(event.worker);
      if (worker !== undefined) live(step, worker, event.event);
      return;
    }
    case 'due':
      return onDue(step, event.timer);
    case 'heartbeat-due':
      return beat(step, event.eventLoopUtilization);
    case 'upkeep-due':
      return maintain(step, event.readings);
    case 'reload':
      return reload(step, event.reason, event.asker);
    case 'program-found':
      return reloadTo(step, event.program);
    case 'scale':
      return scale(step, event.workers, event.reason, event.asker);
    case 'reserved':
      return scaleTo(step, event.workers, event.reason, event.asker, event.error);
    case 'restart':
      return restart(step, event);
    case 'stop':
      return stop(step, event);
    case 'acceptors-closed':
      return tellReleased(step);
  }
}

function onDue(step: Step, timer: Timer): void {
  // One that was put off or disarmed meanwhile may be on its way here already.
  if (!step.fired(timer)) return;
  if ('worker' in timer) {
    const worker = step.worker(timer.worker);
    if (worker !== undefined) live(step, worker, timer);
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
