import type { InForce, RecycleOptions } from '../../../contract/options/index.js';

/** The maximum share by which a worker's limits differ from the options. */
const JITTER_RATIO = 0.1;

/**
 * Whether a worker has reached its maximum of requests or its maximum age.
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
