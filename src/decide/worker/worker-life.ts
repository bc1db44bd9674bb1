import {
  ClusterAddressError,
  ClusterConfigurationError,
  isAddressErrorCode,
} from '../../contract/errors/errors.js';
import type { WorkerEventOf } from '../input.js';
import {
  candidateOf,
  type DrainingWorker,
  type LiveWorker,
  type ReadyWorker,
  type StartingWorker,
  type Worker,
} from '../cluster-state.js';
import { RECOVERY_MS } from '../policies/failure.policy.js';
import { loseCandidate, onCandidateReady } from '../replace/replacement.js';
import { judgeMemory } from '../replace/upkeep.js';
import { giveUp } from '../shutdown.js';
import type { Step } from '../step.js';
import { recover } from './dead-worker.js';
import { verify } from './verification.js';
import { forgetBootErrors, killFailed, retire } from './worker-actions.js';

/**
 * A signal to the whole process group (systemd, a shell) may reach workers before the primary. So a
 * worker that received a signal keeps serving for this time and is not replaced yet. If all workers
 * drained by themselves, no worker would accept the waiting connections.
 */
const GROUP_SIGNAL_MS = 100;

export function becomeReady(
  step: Step,
  worker: StartingWorker,
  event: WorkerEventOf<'ready'>,
): void {
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
export function noteBootFailure(
  step: Step,
  worker: Worker,
  event: WorkerEventOf<'boot-failed'>,
): void {
  const { listening, error } = event;
  step.change(worker, { error });
  if (step.state.everReady) return;
  if (error.code === ClusterConfigurationError.code) {
    giveUp(step, new ClusterConfigurationError(error.message));
  } else if (listening === true && isAddressErrorCode(error.code)) {
    giveUp(step, new ClusterAddressError(step.settings.url, error));
  }
}

export function timeOut(step: Step, worker: StartingWorker): void {
  const { readyTimeoutMs } = step.options;
  const detail = `boot timed out: it was not ready within ${readyTimeoutMs} ms (readyTimeoutMs) and was killed`;
  killFailed(step, worker, 'boot', detail);
}

/** Kills a worker of another protocol version, because its messages cannot be parsed. */
export function refuseVersion(
  step: Step,
  worker: StartingWorker,
  { version }: WorkerEventOf<'foreign-version'>,
): void {
  const detail = `its copy of nestjs-cluster uses IPC protocol version ${version}, but the primary, which a reload does not replace, uses another; restart the cluster`;
  killFailed(step, worker, 'boot', detail);
}

/** The worker has lived long enough to end its slot's crash loop. */
export function onRecovered(step: Step, worker: ReadyWorker): void {
  const { index, worker: current, failures } = step.slotOf(worker);
  if (current !== worker.id) return;
  step.setSlot(index, { failures: { ...failures, shortLives: 0, degraded: false } });
}

/** The worker itself received SIGTERM, or its app closes itself. It serves until the primary drains it. */
export function leaveSoon(
  step: Step,
  worker: ReadyWorker,
  { closed }: WorkerEventOf<'leaving'>,
): void {
  step.change(worker, { leaving: closed === true ? 'closed' : 'signalled' });
  step.armFor(worker, 'leave-due', GROUP_SIGNAL_MS);
}

export function whenLeaveDue(step: Step, worker: ReadyWorker): void {
  leave(step, worker, { closed: worker.leaving === 'closed' });
}

/** Makes the worker drain, and gives its slot a new worker. */
export function leave(
  step: Step,
  worker: LiveWorker,
  { closed = false }: { readonly closed?: boolean | undefined },
): void {
  if (step.state.shutdown !== undefined) return;
  retire(step, worker, 'signal');
  // A failure, so that an app that always closes itself enters a crash loop.
  if (closed) return recover(step, worker, 'exit', 'its app closed itself');
  if (loseCandidate(step, worker, 'it received a signal')) return;
  if (candidateOf(step.slotOf(worker)) !== undefined) return;
  const delayMs = worker.state === 'starting' ? GROUP_SIGNAL_MS : 0;
  step.arm({ type: 'start-due', slot: worker.slot }, delayMs);
}

export function noteDrain(
  step: Step,
  worker: DrainingWorker,
  { report }: WorkerEventOf<'drained'>,
): void {
  step.change(worker, { drain: report });
}
