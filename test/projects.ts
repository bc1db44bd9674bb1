/** A folder of tests, by the same name. */
export interface Project {
  readonly name:
    'unit' | 'simulation' | 'integration' | 'thorough' | 'seconds' | 'timed' | 'packaging';
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
    name: 'seconds',
    holds: 'promises in seconds',
    leftOutFor: 'it needs a core for each of its two files',
  },
  {
    name: 'timed',
    holds: 'measurements, a hang in seconds, and chaos',
    leftOutFor: 'it needs a machine that does nothing else',
  },
  {
    name: 'packaging',
    holds: 'the packed package in projects of others, and the site of the documentation',
    leftOutFor: 'it installs packages',
  },
];

/**
 * Test files that depend on how Node itself works, which differs between its major versions. If
 * `TEST_NODES` lists the program of that version, they run once more on it, in a project `node-24`
 * or `node-26`. All other files test our own code, which is the same on every version. To save
 * time, each file is run again on only one of the two.
 *
 * The tests that run again are about how Node listens, accepts connections and passes them on,
 * closes HTTP, TLS and WebSocket connections, ends its channel and its streams, runs, loses and
 * inspects threads, loads modules, and limits descriptors. Tests whose adapter depends on the Node version
 * (`support/adapters.ts`) run again too. Refused options, crash loops, reports, counts and commands
 * are our own code: in these files `itOnce()` and `describeOnce()` of `support/once.ts` mark such
 * tests, and they do not run again.
 */
export const NODE_SENSITIVE: ReadonlyMap<number, readonly string[]> = new Map([
  [
    24,
    [
      'integration/drain',
      'integration/hang',
      'integration/offload',
      'thorough/accept-queue',
      'thorough/async-contexts',
      'thorough/descriptors',
      'thorough/ipc',
      'thorough/metrics-requests',
      'thorough/reuse-port',
    ],
  ],
  [
    26,
    [
      'integration/control',
      'thorough/drain-streams',
      'thorough/drain-tls',
      'thorough/listen',
      'thorough/lost-output',
      'thorough/microservices',
      'thorough/offload-faults',
      'thorough/ports',
      'thorough/rebalance',
      'thorough/round-robin',
      'thorough/second-servers',
      'thorough/systemd',
    ],
  ],
]);
