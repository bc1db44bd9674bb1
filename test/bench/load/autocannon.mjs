import { measureApart } from './client.mjs';

/**
 * Loads a path by autocannon.
 *
 * @returns requests answered well, their rate, latencies in ms, and errors by kind: `refused` is a
 *   503 with Retry-After.
 */
export function autocannon(target, options) {
  return measureApart(target, 'autocannon', options);
}

export async function measure({ port, path, ...options }) {
  const { default: run } = await import('autocannon');
  let refused = 0;
  let unannounced = 0;
  const setupClient = (client) =>
    client.on('headers', ({ statusCode, headers }) => {
      if (statusCode !== 503) return;
      // Names and values, one after the other.
      if (headers.some((name) => /^retry-after$/i.test(name))) refused += 1;
      else unannounced += 1;
    });
  const url = `http://127.0.0.1:${port}${path}`;
  const result = await run({ url, ...options, setupClient });
  const { '2xx': answered, non2xx, timeouts, errors, latency, duration } = result;
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
