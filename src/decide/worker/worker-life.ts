import {
  ClusterAddressError,
  ClusterConfigurationError,
  isAddressErrorCode,
} from '../../contract/errors/index.js';
import { judgeMemory } from '../replace/upkeep.js';
import { RECOVERY_MS } from '../policies/restart.policy.js';
import { forgetBootErrors } from './boot-errors.js';
import type { WorkerEvent, WorkerEventOf } from '../cluster-event.js';
import type {
  DrainingWorker,
  LiveWorker,
  ReadyWorker,
  StartingWorker,
  Worker,
} from '../cluster-state.js';
import {
  drainAfterError,
  drainAfterAll,
  inWords,
  killOverdue,
  noteLateError,
  retire,
} from './retire.js';
import { noteBegun, onLeads, onResigned, wantsToLead } from '../leadership.js';
import { noteBlock, onBlocked, onBlockOverdue, onPong, onResumed } from './liveness.js';
import {
  endCanary,
  judgeHealth,
  loseCandidate,
  onCandidateReady,
  onCheckOverdue,
} from '../replace/replacement.js';
import { giveUp } from '../shutdown.js';
import { EXIT_TIMEOUT_MS, type Step } from '../step.js';
import { onVerified, onVerifyOverdue, verify } from './verification.js';
import { exitDrained, exitUnasked, recover } from './dead-worker.js';
import { candidateOf, killFailed } from './workers.js';

/**
 * A signal to the whole process group (systemd, a shell) may reach workers before the primary. So a
 * worker that got a signal serves on for this time and is not replaced yet. If all workers drained
 * by themselves, waiting connections would find no worker.
 */
const GROUP_SIGNAL_MS = 100;

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

/** The handler of each event of a worker, by the worker's state. */
const HANDLERS: { readonly [T in WorkerEvent['type']]: Row<T> } = {
  ready: { starting: becomeReady, ready: nothing, draining: drainAfterAll },
  'boot-failed': { starting: noteBootFailure, ready: noteBootFailure, draining: noteBootFailure },
  'ready-overdue': { starting: timeOut, ready: nothing, draining: nothing },
  'foreign-version': { starting: refuseVersion, ready: nothing, draining: nothing },
  verified: { starting: nothing, ready: onVerified, draining: nothing },
  'verify-overdue': { starting: nothing, ready: onVerifyOverdue, draining: nothing },
  recovered: { starting: nothing, ready: onRecovered, draining: nothing },

  'canary-over': { starting: nothing, ready: endCanary, draining: nothing },
  checked: { starting: nothing, ready: judgeHealth, draining: nothing },
  'check-overdue': { starting: nothing, ready: onCheckOverdue, draining: nothing },

  pong: { starting: onPong, ready: onPong, draining: onPong },
  blocked: { starting: noteBlock, ready: onBlocked, draining: noteBlock },
  resumed: { starting: onResumed, ready: onResumed, draining: onResumed },
  'block-overdue': { starting: nothing, ready: onBlockOverdue, draining: nothing },

  'lead-request': { starting: wantsToLead, ready: wantsToLead, draining: nothing },
  leads: { starting: nothing, ready: onLeads, draining: nothing },
  resigned: { starting: nothing, ready: onResigned, draining: onResigned },
  'job-begun': { starting: noteBegun, ready: noteBegun, draining: noteBegun },

  fatal: { starting: noteFatal, ready: failSoon, draining: whenFatalAgain },
  exiting: { starting: noteRequests, ready: noteRequests, draining: noteRequests },
  leaving: { starting: leave, ready: leaveSoon, draining: nothing },
  'leave-due': { starting: nothing, ready: whenLeaveDue, draining: nothing },
  drained: { starting: nothing, ready: nothing, draining: noteDrain },
  'stop-overdue': { starting: nothing, ready: nothing, draining: killOverdue },
  'exit-overdue': { starting: abandon, ready: abandon, draining: abandon },
  'channel-error': { starting: noteError, ready: noteError, draining: noteError },
  'channel-broken': {
    starting: onChannelBroken,
    ready: onChannelBroken,
    draining: onChannelBroken,
  },
  exited: { starting: exitUnasked, ready: exitUnasked, draining: exitDrained },
};

/** Handles something that happened to a worker, or that the worker reported. */
export function handleWorkerEvent(step: Step, worker: Worker, event: WorkerEvent): void {
  const handle = HANDLERS[event.type][worker.state];
  (handle as Handler<Worker, WorkerEvent['type']>)(step, worker, event);
}

function becomeReady(step: Step, worker: StartingWorker, event: WorkerEventOf<'ready'>): void {
  if (worker.failure !== undefined) return;
  const { now, options } = step;
  const { url = step.settings.url, endpoints = [], verifiable = false, minReady } = event;
  forgetBootErrors(step);
  step.disarmAllOf(worker.id);
  const ready: ReadyWorker = {
    ...worker,
    state: 'ready',
    readyAt: now,
    error: null,
    threads: 'settled',
    largeAtStart: judgeMemory(event.residentBytes, options.memory) !== 'fine',
    leaving: undefined,
  };
  step.enter(ready);
  const served = step.state.served ?? { url, endpoints };
  step.set({ served, minReady: minReady ?? step.state.minReady });
  step.armFor(worker, 'recovered', RECOVERY_MS);
  step.emit('worker-ready', { worker: worker.id, bootMs: now - worker.startedAt });
  step.do({ type: 'joined', worker: worker.id });
  onCandidateReady(step, ready);
  verify(step, ready, verifiable);
}

/** Ends a cluster in which no worker has ever served, if no restart can fix the error. */
function noteBootFailure(step: Step, worker: Worker, event: WorkerEventOf<'boot-failed'>): void {
  const { listening, error } = event;
  step.change(worker, { error });
  if (step.state.everReady) return;
  if (error.code === ClusterConfigurationError.code) {
    giveUp(step, new ClusterConfigurationError(error.message));
  } else if (listening === true && isAddressErrorCode(error.code)) {
    giveUp(step, new ClusterAddressError(step.settings.url, error));
  }
}

function timeOut(step: Step, worker: StartingWorker): void {
  const { readyTimeoutMs } = step.options;
  const detail = `boot timed out: it was not ready within ${readyTimeoutMs} ms (readyTimeoutMs) and was killed`;
  killFailed(step, worker, 'boot', detail);
}

/** Kills a worker of another protocol version, because none of its messages is understood. */
function refuseVersion(
  step: Step,
  worker: StartingWorker,
  { version }: WorkerEventOf<'foreign-version'>,
): void {
  const detail = `its nestjs-cluster uses version ${version} of the IPC protocol, the primary's another: a reload does not replace the primary; restart the cluster`;
  killFailed(step, worker, 'boot', detail);
}

/** The worker has lived long enough, which ends its slot's crash loop. */
function onRecovered(step: Step, worker: ReadyWorker): void {
  const { index, worker: current, failures } = step.slotOf(worker);
  if (current !== worker.id) return;
  step.setSlot(index, { failures: { ...failures, shortLives: 0, degraded: false } });
}

function noteFatal(step: Step, worker: Worker, { error, requests }: WorkerEventOf<'fatal'>): void {
  step.change(worker, { error: worker.error ?? error, requests, fatal: true });
}

/** Something in the worker called `process.exit()`. */
function noteRequests(step: Step, worker: Worker, { requests }: WorkerEventOf<'exiting'>): void {
  if (!worker.fatal) step.change(worker, { requests });
}

/** The worker drains by itself after an uncaught error. Its slot gets a new worker at once. */
function failSoon(step: Step, worker: ReadyWorker, event: WorkerEventOf<'fatal'>): void {
  const { error, abort, requests } = event;
  const failing = step.change(worker, { error, requests, fatal: true });
  if (abort) return;
  drainAfterError(step, failing, error);
  recover(step, failing, 'crash', inWords(error));
}

function whenFatalAgain(step: Step, worker: DrainingWorker, event: WorkerEventOf<'fatal'>): void {
  // Only the first error counts, because later errors follow from it.
  if (!worker.fatal && !event.abort) noteLateError(step, worker, event);
  noteFatal(step, step.worker(worker.id)!, event);
}

/** The worker got SIGTERM itself, or its app closes itself. It serves until the primary drains it. */
function leaveSoon(step: Step, worker: ReadyWorker, { closed }: WorkerEventOf<'leaving'>): void {
  step.change(worker, { leaving: closed === true ? 'closed' : 'signalled' });
  step.armFor(worker, 'leave-due', GROUP_SIGNAL_MS);
}

function whenLeaveDue(step: Step, worker: ReadyWorker): void {
  leave(step, worker, { closed: worker.leaving === 'closed' });
}

/** Makes the worker drain, and gives its slot a new worker. */
function leave(
  step: Step,
  worker: LiveWorker,
  { closed = false }: { readonly closed?: boolean | undefined },
): void {
  if (step.state.shutdown !== undefined) return;
  retire(step, worker, 'signal');
  // An app that closes itself unasked has failed. If that repeats, the slot is in a crash loop.
  if (closed) return recover(step, worker, 'exit', 'its app closed itself');
  if (loseCandidate(step, worker, 'it received a signal of its own')) return;
  if (candidateOf(step.state, worker.slot) !== undefined) return;
  const delayMs = worker.state === 'starting' ? GROUP_SIGNAL_MS : 0;
  step.arm({ type: 'start-due', slot: worker.slot }, delayMs);
}

/** Gives up a process that SIGKILL does not end: neither its slot nor a shutdown waits for it. */
function abandon(step: Step, { id }: Worker): void {
  const message = `did not end within ${EXIT_TIMEOUT_MS} ms after SIGKILL and is abandoned: it is in an uninterruptible system call (does a disk or a network file system not respond?)`;
  step.emit('warning', { message, worker: id });
  step.do({ type: 'abandon', worker: id });
}

function noteDrain(step: Step, worker: DrainingWorker, { report }: WorkerEventOf<'drained'>): void {
  step.change(worker, { drain: report });
}

function noteError(step: Step, worker: Worker, { error }: WorkerEventOf<'channel-error'>): void {
  // Channel errors are normal while a worker ends, so nothing else is done. The event `exited` follows.
  step.change(worker, { error: worker.error ?? error });
}

function onChannelBroken(
  step: Step,
  worker: Worker,
  { error }: WorkerEventOf<'channel-broken'>,
): void {
  const detail = `its channel is broken (${error.message}) and it was killed`;
  killFailed(step, worker, 'crash', detail);
}
