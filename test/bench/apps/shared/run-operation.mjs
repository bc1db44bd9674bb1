import { monotonicMs } from './monotonic.mjs';

/** More latencies say nothing more of a window. */
const MAX_LATENCIES = 2_000;

/**
 * Runs an operation for `ms`, `at` of them at once.
 *
 * @returns how many there were, how many failed, latencies in ms, and what was heard meanwhile.
 */
export async function runOperation(operations, { what, ms, at }) {
  const operation = operations.get(what);
  const latencies = [];
  let failed = 0;
  const until = monotonicMs() + Number(ms);
  const one = async (place) => {
    while (monotonicMs() < until) {
      const startedAt = monotonicMs();
      try {
        const took = (await operation(place))?.tookMs;
        latencies.push(took ?? monotonicMs() - startedAt);
      } catch {
        failed += 1;
      }
    }
  };
  await Promise.all(Array.from({ length: Number(at) }, (_, place) => one(place)));
  const heard = operations.get('heard')?.() ?? [];
  return {
    count: latencies.length,
    failed,
    heardCount: heard.length,
    latencies: thinned(latencies),
    heard: thinned(heard),
    computed: operations.get('computed')?.(),
  };
}

function thinned(values) {
  const step = Math.ceil(values.length / MAX_LATENCIES);
  return step > 1 ? values.filter((_, index) => index % step === 0) : values;
}
