import type { ReplaceCause } from '../../../contract/snapshot/index.js';
import { judgeMemory } from '../policies/memory.policy.js';
import { isRecyclingDue } from '../policies/recycle.policy.js';
import type { Reading, WorkerEventOf } from '../cluster-event.js';
import type { ReadyWorker, Worker, WorkerId } from '../cluster-state.js';
import { isRequested, requestReplacement, warnNotReplaced } from './replacement.js';
import type { Step } from '../step.js';
import { condemn } from '../worker/workers.js';

type UpkeepCause = Exclude<ReplaceCause, 'reload' | 'restart'>;

/** Finds workers that have grown too large or served long enough, and has them replaced. */
export function maintain(step: Step, readings: ReadonlyMap<WorkerId, Reading>): void {
  if (step.state.shutdown !== undefined) return;
  for (const found of step.state.workers.values()) {
    const reading = readings.get(found.id);
    if (reading === undefined) continue;
    const tooLarge = judgeSize(step, found, reading.residentBytes);
    // It may have been condemned just now.
    const worker = step.worker(found.id)!;
    if (!isServing(step, worker) || worker.condemned !== undefined) continue;
    if (tooLarge !== undefined) {
      if (worker.bornTooLarge) spare(step, worker, tooLarge);
      replace(step, worker, 'memory', tooLarge);
    } else if (isOld(step, worker, reading)) {
      const ageSeconds = Math.round((step.now - worker.startedAt) / 1_000);
      replace(step, worker, 'recycle', `${reading.requests} requests in ${ageSeconds} s`);
    }
  }
}

/** The worker itself says that it should go. It says so again while it is there. */
export function onReplaceRequest(
  step: Step,
  worker: ReadyWorker,
  { reason }: WorkerEventOf<'replace-request'>,
): void {
  if (isServing(step, worker) && worker.condemned === undefined) {
    replace(step, worker, 'recycle', reason);
  }
}

/** After each event: a worker whose candidate failed stays for a while. */
export function settleUpkeep(step: Step): void {
  const { ended } = step;
  if (ended === undefined || ended.failure === null) return;
  const { slot, cause, failure } = ended;
  if (cause === 'reload' || cause === 'restart') return;
  const retryMs = step.options.restart.maxBackoffMs;
  step.setSlot(slot, { noReplacementBefore: step.now + retryMs });
  const message = `is not replaced (cause=${cause}), next try in ${retryMs} ms: ${failure}`;
  warnNotReplaced(step, slot, message);
}

/** Kills what is above the hard limit; says in words what is above the soft one. */
function judgeSize(step: Step, worker: Worker, residentBytes: number): string | undefined {
  const { memory } = step.options;
  const { softLimitBytes, hardLimitBytes } = memory;
  switch (judgeMemory(residentBytes, memory)) {
    case 'fine':
      return undefined;
    case 'replace':
      return `${inMegabytes(residentBytes)} of memory, soft limit ${inMegabytes(softLimitBytes)}`;
    case 'kill':
      condemn(
        step,
        worker,
        'memory',
        `it held ${inMegabytes(residentBytes)} of memory, above memory.hardLimitBytes (${inMegabytes(hardLimitBytes)}), and was killed`,
      );
      return undefined;
  }
}

/** A new worker would be as large at once. This one is replaced anyway, but not again and again. */
function spare(step: Step, worker: ReadyWorker, detail: string): void {
  const pauseMs = step.options.restart.maxBackoffMs;
  const { index, noReplacementBefore } = step.slotOf(worker);
  step.setSlot(index, {
    noReplacementBefore: Math.max(noReplacementBefore, worker.readyAt + pauseMs),
  });
  if (step.state.toldOfLimit) return;
  step.set({ toldOfLimit: true });
  step.emit('warning', {
    message: `holds too much from the start (${detail}): memory.softLimitBytes is too low for this app; replaced once in ${pauseMs} ms at most`,
    worker: worker.id,
  });
}

function isServing(step: Step, worker: Worker): worker is ReadyWorker {
  return worker.state === 'ready' && step.slotOf(worker).worker === worker.id;
}

function isOld(step: Step, { startedAt, jitter }: Worker, { requests }: Reading): boolean {
  return isRecyclingDue({ ageMs: step.now - startedAt, requests }, step.options.recycle, jitter);
}

function replace(step: Step, worker: Worker, cause: UpkeepCause, detail: string): void {
  const { index: slot, release, noReplacementBefore } = step.slotOf(worker);
  if (step.now < noReplacementBefore) return;
  if (isRequested(step.state, (each) => each.slot === slot)) return;
  requestReplacement(step, { slot, cause, detail, release });
}

function inMegabytes(bytes: number): string {
  return `${Math.round(bytes / 1e6)} MB`;
}
