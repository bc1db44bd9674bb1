/** The load of wrk in every comparison of the cost of a request. */
export const LOAD = { path: '/hello', connections: 64 };

/** The settings that all comparisons by windows share. */
export const WINDOWED = {
  seconds: 2,
  starts: 3,
  windows: 6,
  programs: ['wrk'],
  parameters: LOAD,
  chart: { metric: 'cpuMicros', title: 'CPU per request', unit: 'µs', better: 'lower' },
};
