import { ClusterConfigurationError } from '../../contract/errors/errors.js';
import type { ReadyWorker, Worker } from '../cluster-state.js';
import type { WorkerEventOf } from '../input.js';
import { loseCandidate, onThreadsVerified } from '../replace/replacement.js';
import { giveUp } from '../shutdown.js';
import type { Step } from '../step.js';
import { inWords, killFailed } from './worker-actions.js';

/**
 * Called when a worker becomes ready. The first worker of each generation is asked whether its
 * threads can load their code. One answer is enough, because all workers of a generation have the
 * same code. Until then, the cluster does not count as started, and a reload replaces no more
 * workers.
 *
 * @param verifiable `false` if the app offloads nothing.
 */
export function verify(step: Step, worker: ReadyWorker, verifiable: boolean): void {
  if (!verifiable || step.state.verified.includes(worker.generation))
    return markVerified(step, worker);
  step.change(worker, { threads: 'unverified' });
}

/** Called after each event: asks one worker of each unverified generation. */
export function settleVerification(step: Step): void {
  for (const { id } of step.state.workers.values()) {
    const worker = step.worker(id)!;
    if (worker.state !== 'ready' || worker.threads !== 'unverified') continue;
    if (readyOf(step, worker).some(({ threads }) => threads === 'asked')) continue;
    step.change(worker, { threads: 'asked' });
    step.send(worker, { type: 'verify' });
    if (!worker.debugged) step.armFor(worker, 'verify-overdue', step.options.readyTimeoutMs);
  }
}

export function onVerified(
  step: Step,
  worker: ReadyWorker,
  { error }: WorkerEventOf<'verified'>,
): void {
  if (worker.threads !== 'asked') return;
  if (error === null) return markVerified(step, worker);
  settle(step, worker);
  if (loseCandidate(step, worker, inWords(error)) || step.state.everReady) return;
  giveUp(step, new ClusterConfigurationError(error.message));
}

export function onVerifyOverdue(step: Step, worker: ReadyWorker): void {
  const detail = `boot timed out: its threads had not loaded within ${step.options.readyTimeoutMs} ms (readyTimeoutMs)`;
  if (!loseCandidate(step, worker, detail)) {
    killFailed(step, worker, 'boot', `${detail} and it was killed`);
  }
}

function markVerified(step: Step, worker: ReadyWorker): void {
  const { verified, everReady, served } = step.state;
  const { generation } = worker;
  if (!verified.includes(generation)) step.set({ verified: [...verified, generation] });
  for (const each of readyOf(step, worker)) {
    settle(step, each);
    onThreadsVerified(step, each);
  }
  if (everReady || served === undefined) return;
  step.set({ everReady: true });
  step.do({ type: 'serving', served });
}

function settle(step: Step, worker: ReadyWorker): void {
  step.disarm({ type: 'verify-overdue', worker: worker.id });
  step.change(worker, { threads: 'settled' });
}

function readyOf({ state }: Step, { generation }: Worker): readonly ReadyWorker[] {
  return [...state.workers.values()].filter(
    (each) => each.state === 'ready' && each.generation === generation,
  ) as ReadyWorker[];
}
