/** What wrk asks for wherever the cost of a request is compared. */
export const LOAD = { path: '/hello', connections: 64 };

/** What all comparisons by windows have in common. */
export const WINDOWED = {
  seconds: 2,
  starts: 3,
  windows: 6,
  programs: ['wrk'],
  parameters: LOAD,
  chart: { metric: 'cpuMicros', title: 'CPU per request', unit: 'µs', better: 'lower' },
};
