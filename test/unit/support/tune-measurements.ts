import type { Measurement } from '../../../src/tools/tune/run/measurement.js';

/** A measurement of so many workers whose event loops are busy; what is not given is uneventful. */
export function measured(
  workers: number,
  requestsPerSecond: number,
  given: Partial<Measurement> = {},
): Measurement {
  return {
    setting: { workers, threads: given.threads },
    requestsPerSecond,
    p50Ms: 10,
    p99Ms: 20,
    failed: 0,
    busyCores: workers,
    memoryBytes: workers * 100e6 + 50e6,
    workerMemoryBytes: 100e6,
    threads: undefined,
    eventLoopUtilization: 1,
    coresOfOthers: undefined,
    generatorUtilization: 0.2,
    spreadRatio: 0.01,
    ...given,
  };
}
