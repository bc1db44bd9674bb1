import { runScript } from './client.mjs';

/**
 * Loads a path by autocannon.
 *
 * @returns requests answered well, their rate, latencies in ms, and errors by kind: `refused` is a
 *   503 with Retry-After.
 */
export async function autocannon(target, options) {
  const result = await runScript(target, 'autocannon-process.mjs', options);
  const {
    '2xx': answered,
    non2xx,
    timeouts,
    errors,
    latency,
    duration,
    refused,
    unannounced,
  } = result;
  return {
    requests: answered,
    requestsPerSecond: answered / duration,
    latencyMeanMs: latency.mean,
    p50Ms: latency.p50,
    p99Ms: latency.p99,
    maxMs: latency.max,
    errors: {
      timeout: timeouts,
      connection: errors - timeouts,
      refused,
      'refused without Retry-After': unannounced,
      status: non2xx - refused - unannounced,
    },
  };
}
