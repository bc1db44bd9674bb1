import type { ReplaceCause } from '../../contract/snapshot/types.js';
import { MAX_BACKOFF_MS } from '../policies/failure.policy.js';
import type { Reading } from '../input.js';
import type { ReadyWorker, Worker, WorkerId } from '../cluster-state.js';
import { isRequested, requestReplacement, warnNotReplaced } from './replacement.js';
import type { Step } from '../step.js';
import type { InForce, MemoryOptions, RecycleOptions } from '../../contract/options/resolve.js';
import { killFailed } from '../worker/worker-actions.js';

type UpkeepCause = Exclude<ReplaceCause, 'reload' | 'restart'>;

/** Replaces workers that have grown too large or have served long enough. */
export function maintain(step: Step, readings: ReadonlyMap<WorkerId, Reading>): void {
  if (step.state.shutdown !== undefined) return;
  for (const found of step.state.workers.values()) {
    const reading = readings.get(found.id);
    if (reading === undefined) continue;
    const tooLarge = judgeSize(step, found, reading.residentBytes);
    // Read again, because `judgeSize` may have killed the worker.
    const worker = step.worker(found.id)!;
    if (!isSettled(step, worker)) continue;
    if (tooLarge !== undefined) {
      if (worker.largeAtStart) postpone(step, worker, tooLarge);
      replace(step, worker, 'memory', tooLarge);
    } else if (isOld(step, worker, reading)) {
      const ageSeconds = Math.round((step.now - worker.startedAt) / 1_000);
      replace(step, worker, 'recycle', `${reading.requests} requests in ${ageSeconds} s`);
    }
  }
}

/** Called after each event: if a candidate has failed, postpones the slot's next replacement. */
export function settleUpkeep(step: Step): void {
  const { ended } = step;
  if (ended === undefined || ended.failure === null) return;
  const { slot, cause, failure } = ended;
  if (cause === 'reload' || cause === 'restart') return;
  step.setSlot(slot, { noReplacementBefore: step.now + MAX_BACKOFF_MS });
  const message = `was not replaced (cause=${cause}), next attempt in ${MAX_BACKOFF_MS} ms: ${failure}`;
  warnNotReplaced(step, slot, message);
}

/** Kills a worker above the hard limit. @returns a description if the worker exceeds the soft limit. */
function judgeSize(step: Step, worker: Worker, residentBytes: number): string | undefined {
  const { memory } = step.options;
  const size = inMegabytes(residentBytes);
  const verdict = judgeMemory(residentBytes, memory);
  if (verdict === 'replace') {
    return `${size} of memory, soft limit ${inMegabytes(memory.softLimitBytes)}`;
  }
  if (verdict === 'kill') {
    const limit = inMegabytes(memory.hardLimitBytes);
    const detail = `it used ${size} of memory, above memory.hardLimitBytes (${limit}), and was killed`;
    killFailed(step, worker, 'memory', detail);
  }
  return undefined;
}

/** Postpones further replacements, because a new worker would exceed the soft limit immediately. */
function postpone(step: Step, worker: ReadyWorker, detail: string): void {
  const { index, noReplacementBefore } = step.slotOf(worker);
  step.setSlot(index, {
    noReplacementBefore: Math.max(noReplacementBefore, worker.readyAt + MAX_BACKOFF_MS),
  });
  if (step.state.warnedOfLimit) return;
  step.set({ warnedOfLimit: true });
  step.emit('warning', {
    message: `exceeds memory.softLimitBytes as soon as it is ready (${detail}) and is replaced at most once every ${MAX_BACKOFF_MS} ms; the limit is too low for this app`,
    worker: worker.id,
  });
}

/** Whether the worker is ready, belongs to its slot, and is not being killed. */
function isSettled(step: Step, worker: Worker): worker is ReadyWorker {
  return (
    worker.state === 'ready' &&
    worker.failure === undefined &&
    step.slotOf(worker).worker === worker.id
  );
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

/** The maximum share by which a worker's limits differ from the options. */
const JITTER_RATIO = 0.1;

/**
 * Whether a worker has reached its maximum number of requests or its maximum age.
 *
 * @param jitter 0..1, drawn once for each worker. It varies the limits, so that workers that
 *   started together are not replaced together.
 */
export function isRecyclingDue(
  worker: { readonly ageMs: number; readonly requests: number },
  options: InForce<RecycleOptions>,
  jitter: number,
): boolean {
  const factor = 1 + JITTER_RATIO * (2 * jitter - 1);
  return (
    worker.requests >= options.maxRequests * factor || worker.ageMs >= options.maxAgeMs * factor
  );
}

/** A worker above the hard limit is killed. A worker above the soft limit is replaced. */
export function judgeMemory(residentBytes: number, limits: InForce<MemoryOptions>) {
  if (residentBytes > limits.hardLimitBytes) return 'kill';
  return residentBytes > limits.softLimitBytes ? 'replace' : 'fine';
}

function inMegabytes(bytes: number): string {
  return `${Math.round(bytes / 1e6)} MB`;
}
