import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { fileURLToPath } from 'node:url';
import { median } from '../statistics.mjs';

const APP = fileURLToPath(new URL('../apps/request-path.mjs', import.meta.url));

/** Scopes: what an app with @CpuBound() methods has, so that a call knows whose client waits. */
const VARIANTS = [
  { name: 'without the package', env: { TRACKED: '0' } },
  { name: 'no metrics, no scopes', env: { MODULE_OPTIONS: '{"metrics":false}', CPU_BOUND: '0' } },
  { name: 'no metrics, scopes', env: { MODULE_OPTIONS: '{"metrics":false}' } },
  { name: 'metrics, no scopes', env: { CPU_BOUND: '0' } },
  { name: 'metrics, scopes', env: {} },
];

/**
 * The cost of tracking and measuring one request, in nanoseconds. Each process handles a million
 * requests without sockets; the variants take turns with a new process for each round. Reports the
 * least of all batches of a thousand requests, and the median of the processes' median batches:
 * an interruption of a process changes neither.
 */
export async function requestPath({ node, adapters, rounds, requests, progress }) {
  const results = [];
  for (const adapter of adapters) {
    const runs = new Map(VARIANTS.map(({ name }) => [name, []]));
    for (let round = 0; round < rounds; round += 1) {
      for (const { name, env } of round % 2 === 0 ? VARIANTS : VARIANTS.toReversed()) {
        const nanos = await measure(node, { ...env, ADAPTER: adapter, REQUESTS: String(requests) });
        runs.get(name).push(nanos);
        progress(
          `${adapter}, round ${round + 1}/${rounds}, ${name}: least ${nanos.least.toFixed(0)}, median ${nanos.median.toFixed(0)} ns`,
        );
      }
    }
    for (const [variant, nanos] of runs) {
      results.push({
        adapter,
        variant,
        leastNanos: Math.round(Math.min(...nanos.map(({ least }) => least))),
        medianNanos: Math.round(median(nanos.map((run) => run.median))),
      });
    }
  }
  return results;
}

async function measure(node, env) {
  const { stdout } = await promisify(execFile)(node, [APP], {
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      NODE_ENV: 'production',
      CLUSTER_LOG_FORMAT: 'json',
      CLUSTER_OFFLOAD: 'inline',
      ...env,
    },
  });
  return JSON.parse(stdout.trim().split('\n').at(-1));
}
