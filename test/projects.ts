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
      'integration/crash',
      'integration/drain',
      'integration/hang',
      'integration/offload',
      'thorough/accept-queue',
      'thorough/descriptors',
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
