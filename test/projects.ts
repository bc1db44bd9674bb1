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
    holds: 'the packed package in projects of others',
    leftOutFor: 'it installs packages',
  },
];

/**
 * What rests on Node's own workings, which differ from line to line: these files run once more on
 * that Node, in a project `node-24` or `node-26`, where `TEST_NODES` lists its program. The rest is
 * ours on every Node. What rests on Node least is run on one of the two.
 *
 * Run again are the tests of how Node listens, accepts and hands on, closes HTTP, TLS and WebSocket
 * connections, ends its channel and its streams, runs, loses and inspects threads, and limits
 * descriptors; and those whose adapter is drawn (`support/adapters.ts`). Refused options, crash
 * loops, reports, counts and commands are ours: `itOnce()` and `describeOnce()` of
 * `support/once.ts` mark them.
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
    ],
  ],
]);
