import { runScript } from './client.mjs';

/** Sends a number of requests by loadtest, so many at a time. */
export async function loadtest(target, options) {
  const {
    totalRequests,
    totalErrors,
    totalTimeSeconds,
    effectiveRps,
    meanLatencyMs,
    maxLatencyMs,
    percentiles,
    errorCodes,
  } = await runScript(target, 'loadtest-process.mjs', options);
  return {
    requests: totalRequests - totalErrors,
    requestsPerSecond: effectiveRps,
    totalMs: totalTimeSeconds * 1_000,
    latencyMeanMs: meanLatencyMs,
    p50Ms: percentiles[50],
    p99Ms: percentiles[99],
    longestMs: maxLatencyMs,
    errors: errorCodes,
  };
}
