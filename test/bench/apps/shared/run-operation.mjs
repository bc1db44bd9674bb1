import { monotonicMs } from './monotonic.mjs';

/** Maximum number of latencies reported for a window. A larger sample would show nothing more. */
const MAX_LATENCIES = 2_000;

/**
 * Runs an operation again and again for `ms`, `at` calls at a time.
 *
 * @returns the number of calls and of failed ones, latencies in ms, and the events heard by then.
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
