/** The few figures of a round that say how it went, for the terminal. */
const SHOWN = {
  cpuMicros: (value) => `${value.toFixed(1)} µs/request`,
  requestsPerSecond: (value) => `${Math.round(value)}/s`,
  p99Ms: (value) => `p99 ${value.toFixed(1)} ms`,
  lightP99Ms: (value) => `light p99 ${value.toFixed(1)} ms`,
  heavyPerSecond: (value) => `${value.toFixed(1)} heavy/s`,
  busiestRatio: (value) => `busiest ${value.toFixed(2)}`,
  lost: (value) => `${value} lost`,
  readyMs: (value) => `first answer after ${Math.round(value)} ms`,
  allReadyMs: (value) => `all after ${Math.round(value)} ms`,
  recoveryMs: (value) => `whole again after ${Math.round(value)} ms`,
  replaced: (value) => (value ? 'replaced' : 'not replaced'),
  failedProbes: (value) => `${value} probes failed`,
  totalMs: (value) => `${Math.round(value)} ms in all`,
  frontRssBytes: (value) => `primary ${(value / 1e6).toFixed(0)} MB`,
  workerRssBytes: (value) => `worker ${(value / 1e6).toFixed(0)} MB`,
};

/** @param judgement of `Disturbances`: whether it counts, and what disturbed it. */
export function describeMeasurement({ errors = {}, ...metrics }, { counts, disturbed }) {
  const figures = Object.entries(SHOWN)
    .filter(([key]) => metrics[key] !== undefined)
    .map(([key, format]) => format(metrics[key]));
  const kinds = Object.entries(errors)
    .filter(([, count]) => count > 0)
    .map(([kind, count]) => `${count} ${kind}`);
  const judged = disturbed && `${counts ? 'disturbed' : 'discarded'}: ${disturbed}`;
  return [...figures, ...kinds, judged].filter(Boolean).join(', ');
}
