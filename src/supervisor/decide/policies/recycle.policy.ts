import type { InForce, RecycleOptions } from '../../../contract/options/index.js';

/** The share by which the limits of a worker differ at most. */
const JITTER_RATIO = 0.1;

/**
 * Whether a worker has served long enough.
 *
 * @param jitter 0..1, drawn once for each worker: moves its limits by the jitter, so that workers
 * that started together are not due together.
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
