import { ClusterConfigurationError } from '../../contract/errors/index.js';
import type { ErrorReport } from '../../contract/errors/error-report.js';
import type { WorkerEventOf } from '../cluster-event.js';
import type { ReadyWorker, Worker, WorkerId } from '../cluster-state.js';
import { inWords } from './retire.js';
import { loseCandidate, onProven } from '../replace/replacement.js';
import { giveUp } from '../shutdown.js';
import type { Step } from '../step.js';
import { condemn } from './workers.js';

/** One worker of each generation verifies that its threads can load the code that they run. */
export interface Verification {
  /** Generations whose threads are known to load their code. */
  readonly proven: readonly number[];
  readonly asked: WorkerId | undefined;
}

/**
 * Asks one worker of each generation, once it is ready, whether its threads can load the code that
 * they run. One answer is enough, because all workers of a generation have the same code. Until the
 * answer, the cluster does not count as started, and a reload waits with its first new worker.
 */
export function verify(step: Step, worker: ReadyWorker): void {
  const { proven, asked } = step.state.verification;
  // Not verifiable: the app offloads nothing, or its version of this package checks threads before ready.
  if (!worker.verifiable || proven.includes(worker.generation)) return prove(step, worker);
  step.change(worker, { unproven: true });
  if (asked !== undefined && step.worker(asked)?.state === 'ready') return;
  step.set({ verification: { proven, asked: worker.id } });
  step.send(worker, { type: 'verify' });
  if (!worker.debugged) step.armFor(worker, 'verify-overdue', step.options.readyTimeoutMs);
}

export function onVerified(step: Step, worker: Worker, { error }: WorkerEventOf<'verified'>): void {
  if (!stopAsking(step, worker)) return;
  step.disarm({ type: 'verify-overdue', worker: worker.id });
  if (error === null) prove(step, worker);
  else refuse(step, worker, error);
  askNext(step);
}

/** If the exited worker had been asked and had not answered, asks another worker. */
export function askAnother(step: Step, worker: Worker): void {
  if (stopAsking(step, worker)) askNext(step);
}

export function onVerifyOverdue(step: Step, worker: ReadyWorker): void {
  if (step.state.verification.asked !== worker.id) return;
  const detail = `boot timed out: its threads had not loaded within ${step.options.readyTimeoutMs} ms (readyTimeoutMs)`;
  if (!loseCandidate(step, worker, detail)) {
    condemn(step, worker, 'boot', `${detail} and it was killed`);
  }
}

function stopAsking(step: Step, { id }: Worker): boolean {
  const { verification } = step.state;
  if (verification.asked !== id) return false;
  step.set({ verification: { ...verification, asked: undefined } });
  return true;
}

function askNext(step: Step): void {
  for (const worker of step.state.workers.values()) {
    if (worker.state === 'ready' && worker.unproven) return verify(step, worker);
  }
}

function prove(step: Step, { id, generation }: Worker): void {
  const { proven, asked } = step.state.verification;
  if (!proven.includes(generation)) {
    step.set({ verification: { proven: [...proven, generation], asked } });
  }
  for (const worker of step.state.workers.values()) {
    if (worker.state === 'ready' && worker.unproven && worker.generation === generation) {
      step.change(worker, { unproven: false });
    }
  }
  onProven(step, { id });
  const { everReady, served } = step.state;
  if (everReady || served === undefined) return;
  step.set({ everReady: true });
  step.do({ type: 'serving', served });
}

function refuse(step: Step, worker: Worker, error: ErrorReport): void {
  if (worker.state === 'ready') step.change(worker, { unproven: false });
  if (loseCandidate(step, worker, inWords(error)) || step.state.everReady) return;
  giveUp(step, new ClusterConfigurationError(error.message));
}
