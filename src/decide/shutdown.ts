import { type ClusterError, ClusterWorkersFailedError } from '../contract/errors/errors.js';
import type { ErrorReport } from '../contract/errors/error-report.js';
import { LEAVE_SIGNAL } from '../contract/messages.js';
import type { ClusterEvent } from './input.js';
import { cancelReload } from './replace/reload.js';
import { cancelRequests } from './replace/answers.js';
import type { Step } from './step.js';
import { retire } from './worker/worker-actions.js';

type Stop = Extract<ClusterEvent, { type: 'stop' }>;

/** Stops the cluster. The second signal destroys connections, the third kills. A further call does nothing. */
export function stop(step: Step, { reason, signal }: Stop): void {
  const { shutdown } = step.state;
  const workers = step.state.workers.size;
  if (shutdown === undefined) {
    step.emit('stopping', { reason, workers, force: 'drain' });
    return begin(step, 0, signal?.name ?? LEAVE_SIGNAL);
  }
  if (signal === undefined) return;
  const isFirst = shutdown.phase === 'draining';
  step.emit('stopping', { reason, workers, force: isFirst ? 'destroy' : 'kill' });
  for (const worker of step.state.workers.values()) {
    if (isFirst) step.do({ type: 'force', worker: worker.id });
    else step.kill(worker, 'SIGKILL');
  }
  const phase = isFirst ? 'destroying' : 'killing';
  step.set({ shutdown: { ...shutdown, phase, exitCode: 128 + signal.number } });
}

/** Shuts the cluster down because of an error. Workers that still serve requests are drained. */
export function giveUp(step: Step, error: ClusterError): void {
  if (step.state.shutdown !== undefined) return;
  const { message, exitCode } = error;
  const cause = error instanceof ClusterWorkersFailedError ? (error.cause as ErrorReport) : null;
  step.emit('failed', { message, exitCode, error: cause });
  begin(step, exitCode, LEAVE_SIGNAL);
}

/** Called when a worker ends abnormally: the exit code must not be 0. */
export function noteBadEnd(step: Step): void {
  const { shutdown } = step.state;
  if (shutdown === undefined) return;
  step.set({ shutdown: { ...shutdown, exitCode: shutdown.exitCode || 1 } });
}

/** Called after each event: ends the cluster once its last worker has exited. */
export function settleShutdown(step: Step): void {
  const { workers, shutdown, ended } = step.state;
  if (shutdown === undefined || workers.size > 0 || ended) return;
  step.disarm({ type: 'lame-duck-over' });
  step.do({ type: 'close-sockets' });
  step.do({ type: 'end', exitCode: shutdown.exitCode });
  step.set({ ended: true });
}

/** Closes the sockets, so that new connections are refused and do not wait for workers that have left. */
export function releaseSockets(step: Step): void {
  step.do({ type: 'close-sockets' });
  step.do({ type: 'close-acceptors' });
}

/** Tells the workers to accept the waiting connections, and then to close the sockets. */
export function sendReleased(step: Step): void {
  for (const worker of step.state.workers.values()) step.send(worker, { type: 'released' });
}

function begin(step: Step, exitCode: number, signal: NodeJS.Signals): void {
  step.set({ shutdown: { phase: 'draining', exitCode, signal } });
  // Workers still listen during the lame-duck period.
  step.arm({ type: 'lame-duck-over' }, step.options.shutdown.lameDuckMs);
  step.set({ replacementsWaiting: [] });
  for (const { index } of step.state.slots) {
    step.disarm({ type: 'start-due', slot: index });
    step.setSlot(index, { replacement: undefined });
  }
  for (const worker of step.state.workers.values()) {
    if (worker.state !== 'draining') retire(step, worker, 'shutdown', signal);
  }
  cancelReload(step);
  cancelRequests(step);
}
