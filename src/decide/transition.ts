import type { ClusterEvent, WorkerEvent, WorkerEventOf } from './input.js';
import {
  type ClusterState,
  type DrainingWorker,
  type ReadyWorker,
  type Release,
  type StartingWorker,
  type Timer,
  wantedSlots,
  type Worker,
} from './cluster-state.js';
import type { Effect } from './effect.js';
import * as leadership from './leadership.js';
import * as reload from './replace/reload.js';
import * as replacement from './replace/replacement.js';
import { request, settleRestarts } from './replace/requests.js';
import { maintain, settleUpkeep } from './replace/upkeep.js';
import { newSlot, settleScaling } from './scaling.js';
import { releaseSockets, sendReleased, settleShutdown, stop } from './shutdown.js';
import { type Settings, Step } from './step.js';
import * as death from './worker/dead-worker.js';
import * as liveness from './worker/liveness.js';
import * as verification from './worker/verification.js';
import * as life from './worker/worker-life.js';
import * as start from './worker/worker-actions.js';

/** The new state of the cluster, and the effects to carry out. */
export interface Transition {
  readonly state: ClusterState;
  /** In the order in which to carry them out. */
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
    workers: new Map(),
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
    replacementsWaiting: [],
    bootErrors: { generation: release.generation, printer: undefined, reported: [] },
    verified: [],
    leadership: leadership.NO_LEADER,
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
      for (const slot of wantedSlots(step.state)) start.startSlot(step, slot);
      return;
    case 'worker': {
      const worker = step.worker(event.worker);
      if (worker !== undefined) handleWorkerEvent(step, worker, event.event);
      return;
    }
    case 'due':
      return onDue(step, event.timer);
    case 'heartbeat-due':
      return liveness.beat(step, event.eventLoopUtilization);
    case 'upkeep-due':
      return maintain(step, event.readings);
    case 'reload':
    case 'scale':
    case 'restart':
      return request(step, event);
    case 'program-found':
      return reload.programFound(step, event.program);
    case 'stop':
      return stop(step, event);
    case 'acceptors-closed':
      return sendReleased(step);
  }
}

type Handler<W extends Worker, T extends WorkerEvent['type']> = (
  step: Step,
  worker: W,
  event: WorkerEventOf<T>,
) => void;

type Row<T extends WorkerEvent['type']> = {
  readonly starting: Handler<StartingWorker, T>;
  readonly ready: Handler<ReadyWorker, T>;
  readonly draining: Handler<DrainingWorker, T>;
};

const nothing = (): void => {};

function always<T extends WorkerEvent['type']>(handler: Handler<Worker, T>): Row<T> {
  return { starting: handler, ready: handler, draining: handler };
}

/** The handlers of worker events, by worker state. */
const HANDLERS: { readonly [T in WorkerEvent['type']]: Row<T> } = {
  ready: { starting: life.becomeReady, ready: nothing, draining: start.drainAfterAll },
  'boot-failed': always(life.noteBootFailure),
  'ready-overdue': { starting: life.timeOut, ready: nothing, draining: nothing },
  'foreign-version': { starting: life.refuseVersion, ready: nothing, draining: nothing },
  verified: { starting: nothing, ready: verification.onVerified, draining: nothing },
  'verify-overdue': { starting: nothing, ready: verification.onVerifyOverdue, draining: nothing },
  recovered: { starting: nothing, ready: life.onRecovered, draining: nothing },

  'canary-over': { starting: nothing, ready: replacement.endCanary, draining: nothing },
  checked: { starting: nothing, ready: replacement.judgeHealth, draining: nothing },
  'check-overdue': { starting: nothing, ready: replacement.onCheckOverdue, draining: nothing },

  pong: always(liveness.onPong),
  blocked: {
    starting: liveness.noteBlock,
    ready: liveness.onBlocked,
    draining: liveness.noteBlock,
  },
  resumed: always(liveness.onResumed),
  'block-overdue': { starting: nothing, ready: liveness.onBlockOverdue, draining: nothing },

  'lead-request': {
    starting: leadership.wantsToLead,
    ready: leadership.wantsToLead,
    draining: nothing,
  },
  leads: { starting: nothing, ready: leadership.onLeads, draining: nothing },
  resigned: { starting: nothing, ready: leadership.onResigned, draining: leadership.onResigned },
  'job-begun': always(leadership.noteBegun),

  fatal: { starting: death.noteFatal, ready: death.failSoon, draining: death.failLate },
  exiting: always(death.noteExiting),
  leaving: { starting: life.leave, ready: life.leaveSoon, draining: nothing },
  'leave-due': { starting: nothing, ready: life.whenLeaveDue, draining: nothing },
  drained: { starting: nothing, ready: nothing, draining: life.noteDrain },
  'stop-overdue': { starting: nothing, ready: nothing, draining: start.killOverdue },
  'exit-overdue': always(death.abandon),
  'channel-error': always(death.noteError),
  'channel-broken': always(death.onChannelBroken),
  exited: { starting: death.exitUnasked, ready: death.exitUnasked, draining: death.exitDrained },
};

function handleWorkerEvent(step: Step, worker: Worker, event: WorkerEvent): void {
  const handle = HANDLERS[event.type][worker.state];
  (handle as Handler<Worker, WorkerEvent['type']>)(step, worker, event);
}

/** Called after each event. Each function acts if the new state requires it. */
function settle(step: Step): void {
  reload.settleReload(step);
  settleRestarts(step);
  settleUpkeep(step);
  verification.settleVerification(step);
  replacement.beginNextReplacement(step);
  settleScaling(step);
  settleShutdown(step);
  leadership.settleLeadership(step);
}

function onDue(step: Step, timer: Timer): void {
  // A timer may fire just after it was disarmed.
  if (!step.removeTimer(timer)) return;
  if ('worker' in timer) {
    const worker = step.worker(timer.worker);
    if (worker !== undefined) handleWorkerEvent(step, worker, timer);
    return;
  }
  switch (timer.type) {
    case 'start-due':
      return start.startWhereNeeded(step, timer.slot);
    case 'observation-over':
      return reload.endObservation(step);
    case 'lame-duck-over':
      return releaseSockets(step);
    case 'lease-due':
      return leadership.onLeaseDue(step);
  }
}
