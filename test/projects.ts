/** A folder of tests, by the same name. */
export interface Project {
  readonly name: 'unit' | 'simulation' | 'integration' | 'thorough' | 'timed' | 'packaging';
  readonly holds: string;
  /** Why `npm test` leaves it out; `undefined` where it does not. */
  readonly leftOutFor?: string;
}

export const PROJECTS: readonly Project[] = [
  { name: 'unit', holds: 'every decision, without processes' },
  { name: 'simulation', holds: 'ten thousand lives of a cluster, in a simulated world' },
  { name: 'integration', holds: 'each promise of the README, in real processes' },
  {
    name: 'thorough',
    holds: 'rare faults, hostile clients, combinations, and features beyond the README',
    leftOutFor: 'it takes the longest',
  },
  {
    name: 'timed',
    holds: 'promises in seconds, measurements, and a minute of chaos',
    leftOutFor: 'it needs a machine that does nothing else',
  },
  {
    name: 'packaging',
    holds: 'the packed package in projects of others',
    leftOutFor: 'it installs packages',
  },
];
