import { median } from '../bench/statistics.mjs';

/** How much more the primary may hold late in a run than early in it, at rest both times. */
const TOLERANCES = {
  descriptors: { more: 3, ratio: 0 },
  listeners: { more: 0, ratio: 0 },
  workerListeners: { more: 0, ratio: 0 },
  heapBytes: { more: 4 * 2 ** 20, ratio: 0.15 },
  residentBytes: { more: 16 * 2 ** 20, ratio: 0.1 },
};

/** Fewer say nothing. */
const LEAST_SAMPLES = 6;

/**
 * Compares the medians of the second and of the last third of what was sampled at rest: the first
 * third is warm-up.
 *
 * @returns rows `{ name, early, late, allowed, flat }`; none where there are too few samples.
 */
export function flatness(samples) {
  if (samples.length < LEAST_SAMPLES) return [];
  const third = Math.floor(samples.length / 3);
  const early = samples.slice(third, -third);
  const late = samples.slice(-third);
  return Object.entries(TOLERANCES).map(([name, { more, ratio }]) => {
    const before = middle(early, name);
    const after = middle(late, name);
    const allowed = before + Math.max(more, before * ratio);
    return { name, early: before, late: after, allowed, flat: after <= allowed };
  });
}

function middle(samples, name) {
  return median(samples.map((sample) => sample[name]).filter((value) => value !== undefined));
}
