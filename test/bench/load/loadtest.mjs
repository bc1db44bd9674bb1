import { measureApart } from './client.mjs';

/** Sends a number of requests by loadtest, so many at a time. */
export function loadtest(target, options) {
  return measureApart(target, 'loadtest', options);
}

export async function measure({ port, path, ...options }) {
  const { loadTest } = await import('loadtest');
  // oxlint-disable-next-line typescript/await-thenable -- it is typed as a plain function
  const result = await loadTest({ url: `http://127.0.0.1:${port}${path}`, ...options });
  return {
    requests: result.totalRequests - result.totalErrors,
    requestsPerSecond: result.effectiveRps,
    totalMs: result.totalTimeSeconds * 1_000,
    latencyMeanMs: result.meanLatencyMs,
    p50Ms: result.percentiles[50],
    p99Ms: result.percentiles[99],
    longestMs: result.maxLatencyMs,
    errors: result.errorCodes,
  };
}
